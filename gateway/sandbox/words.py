"""The vocabulary of ready-made records: people, companies, products and texts."""


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


FIRST_NAMES = _split(
    "Ada|Amir|Anna|Aylin|Ben|Bruno|Carla|Chen|Clara|Daan|David|Elena|Elif|Emil|Emma|Farid|Fiona|Gita|Hanna|Hugo|Ines|"
    "Ivan|Jonas|Jules|Kaito|Lara|Leila|Liam|Lin|Luca|Maja|Marco|Mira|Nadia|Nils|Noor|Olga|Omar|Paula|Petra|Rafael|Rosa|"
    "Sami|Sofia|Tariq|Tess|Uma|Vera|Viktor|Yara|Yusuf|Zoe"
)
LAST_NAMES = _split(
    "Adler|Almeida|Bauer|Becker|Berg|Bianchi|Costa|Dahl|Demir|Diaz|Duarte|Ekström|Ferrari|Fischer|Fontaine|Garcia|Haas|"
    "Hansen|Ito|Jansen|Kaya|Keller|Khan|Kowalski|Larsen|Lehmann|Lopez|Maier|Meyer|Moreau|Nguyen|Novak|Okafor|Olsen|"
    "Park|Patel|Pereira|Petrov|Rossi|Sato|Schmidt|Silva|Sorensen|Tanaka|Torres|Vogel|Weber|Wong|Yilmaz|Zhang"
)
COMPANIES = _split(
    "Alder Logistics|Blue Harbour|Cobalt Works|Delta Foods|Eastwind Energy|Fjord Systems|Granite Insurance|"
    "Hazel & Sons|Indigo Health|Juniper Travel|Kestrel Air|Lumen Labs|Maple Retail|Northgate Bank|Orchard Media|"
    "Pine Street Bikes|Quarry Stone|River Telecom|Summit Outdoor|Tulip Flowers|Umber Paints|Vale Properties|"
    "Willow Clinics|Yarrow Seeds|Zephyr Cars"
)
PRODUCTS = _split("invoice|login|delivery|subscription|dashboard|export|mobile app|password|refund|integration|order")
PROBLEMS = _split(
    "does not load|is missing|was charged twice|arrived damaged|fails with an error|is slow since Monday|"
    "needs a new address|shows the wrong total|stopped syncing|cannot be cancelled|is not accepted"
)
SENTENCES = _split(
    "It worked until yesterday and nothing was changed on our side.|We need this before the end of the month.|"
    "Please call me back in the morning.|The attached picture shows what I see.|Several colleagues report the same.|"
    "Thank you for the quick answer last time.|I tried another browser and it made no difference.|"
    "The number on the letter differs from the one on the site.|Could you look into it today?|"
    "After the update the button is gone."
)
TOPICS = _split(
    "Onboarding|Release checklist|Pricing|Meeting notes|Roadmap|Incident review|Hiring plan|Brand guide|"
    "Security policy|Travel rules|Quarterly goals|Customer interviews|Data retention|Support hours|Launch plan"
)
VERBS = _split("Prepare|Review|Fix|Write|Plan|Check|Order|Migrate|Publish|Translate|Measure|Test")
TAGS = _split(
    "billing|bug|feature|login|mobile|urgent|vip|export|refund|shipping|trial|onboarding|api|outage|question|praise|"
    "renewal|training|hardware|contract"
)
COLORS = _split("red|orange|yellow|green|blue|purple|pink|brown|gray")
CITIES = _split("Berlin|Lisbon|Oslo|Lyon|Turin|Ghent|Porto|Malmö|Graz|Utrecht|Cork|Seville")
COUNTRIES = _split("Germany|Portugal|Norway|France|Italy|Belgium|Sweden|Austria|Netherlands|Ireland|Spain")
STREETS = _split("Station Road|Mill Lane|Harbour Street|Garden Way|Market Square|Bridge Street|Church Hill")
INDUSTRIES = _split("Logistics|Retail|Health|Energy|Media|Insurance|Travel|Manufacturing|Education|Banking")
JOB_TITLES = _split("Engineer|Support agent|Head of sales|Buyer|Accountant|Designer|Operations lead|Project manager")
