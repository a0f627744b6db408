"""What is odd in one kind: an application class for each that is not plain."""

from collections.abc import Mapping

from gateway.sandbox.application import Application
from gateway.sandbox.kinds.support_desk.application import SupportDesk

#: kind → its application; every other kind is a plain one
APPLICATIONS: Mapping[str, type[Application]] = {
    "support-desk": SupportDesk,
}
