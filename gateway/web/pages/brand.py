"""The operator's name, colour and logo on pages for people."""

import re
from dataclasses import dataclass
from pathlib import Path

from gateway.settings import Settings, SettingsError
from gateway.web.pages.static_files import StaticFile

#: maximum bytes of a logo
_MAX_LOGO = 256 << 10
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True)
class Brand:
    """The operator's name, style sheet and logo."""

    name: str
    style: StaticFile
    logo: StaticFile | None

    @classmethod
    def of(cls, settings: Settings) -> "Brand":
        """The brand of the settings; raises SettingsError for an invalid colour or logo."""
        if not _COLOR.fullmatch(settings.brand_color):
            raise SettingsError("GATEWAY_BRAND_COLOR must be a colour such as #1d4ed8")
        css = f":root {{ --brand: {settings.brand_color}; }}\n"
        logo = _logo(settings.brand_logo) if settings.brand_logo else None
        return cls(settings.brand_name, StaticFile.of("brand.css", css.encode()), logo)


def _logo(path: Path) -> StaticFile:
    try:
        content = path.read_bytes()
        if len(content) > _MAX_LOGO:
            raise SettingsError(f"GATEWAY_BRAND_LOGO: {path} has more than {_MAX_LOGO >> 10} KiB")
        return StaticFile.of(path.name, content)
    except KeyError as error:
        raise SettingsError(f"GATEWAY_BRAND_LOGO: {path} is not an svg, png, jpg or webp file") from error
    except OSError as error:
        raise SettingsError(f"GATEWAY_BRAND_LOGO: {path} cannot be read: {error.strerror}") from error
