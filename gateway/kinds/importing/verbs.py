"""Verbs in names of operations: all known ones, those that change something, and those that are not idempotent."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: verbs at the beginning or the end of names of operations
VERBS = _set(
    "accept acknowledge activate add align append apply approve archive assign associate attach authorize "
    "autocomplete ban batch block bulk calculate cancel change charge check claim clear clone close collect "
    "complete compute confirm connect convert copy create deactivate decline delete deny deploy describe destroy "
    "deduct deposit detach disable disassociate disconnect dismiss download duplicate edit enable escalate evaluate "
    "exchange execute expire export extend fetch filter finalize find follow forward generate get head identify import "
    "increment insert install invite join kick leave link list lock lookup manage mark merge migrate modify move "
    "mute notify open patch pause pay pin ping post preview process promote provision publish purchase purge push put "
    "query read reboot redeem redeliver refresh refund regenerate register reject release reload remove rename render "
    "reopen reorder replace reply report request rerequest rerun resend reset resolve restart restore resume retrieve "
    "retry revert review revoke rollback rotate run save schedule search send set share show shutdown sign snooze star "
    "start stop submit subscribe suspend sync tag test toggle track transfer trigger unarchive unassign unban unblock "
    "undelete unfollow uninstall unlink unlock unmute unpin unpublish unregister unstar unsubscribe unsuspend untag "
    "update upload upsert validate verify view void watch write"
)
#: verbs of operations that change something, even if the request is a GET
CHANGING = _set(
    "accept activate add approve archive assign authorize cancel clear close confirm create deactivate delete "
    "destroy disable dismiss edit enable exchange execute expire install invite kick leave lock logoff logout move "
    "open patch pause post publish purge push put reboot regenerate reject remove rename reopen reset restart "
    "resume revoke rotate send set share shutdown sign start stop submit suspend trigger uninstall unlock "
    "unsubscribe update upload write"
)
#: those of `CHANGING` that are not nouns: a path that ends with one is that action, whatever the operation's name
PURELY_CHANGING = _set(
    "activate approve cancel create deactivate delete destroy disable enable execute kick logoff logout purge "
    "reboot regenerate reject remove reset restart resume revoke rotate send shutdown suspend trigger unlock "
    "unsubscribe"
)
#: verbs of operations that are not idempotent, even if the request is a PUT
ONCE = _set(
    "append bill buy charge clone copy decrement deduct deposit dispatch duplicate execute generate import increment "
    "invite merge notify pay ping purchase redeem request "
    "publish push reboot refund regenerate renew reply rerun resend resolve restart retry roll rollback rotate run "
    "send shift snooze start submit test toggle transfer trigger upload"
)
#: verbs of operations that only read
READING = _set(
    "check count describe download fetch filter find get head history identify index info list lookup query read "
    "resolve retrieve search show test validate verify"
)
#: those of `READING` with which a POST may be a read
LOOKING = _set("search query find lookup list filter get retrieve count")


def plain_verb(word: str) -> str | None:
    """The known verb of a word such as "opens" or "completed"; None for other words."""
    endings = (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("d"), word.removesuffix("ed"))
    return next((each for each in endings if each in VERBS or each in READING), None)
