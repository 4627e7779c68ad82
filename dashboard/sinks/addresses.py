"""Where channels may connect to: a host is looked up once, checked, and the checked address is connected to."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from dashboard.sinks.base import SendError


def is_public(address: str) -> bool:
    """Whether an IP address belongs to a machine on the open internet."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast


async def public_address(host: str, port: int) -> str:
    """The address of a host on the open internet, to connect to instead of its name.

    Raises:
        SendError: one of its addresses is private.
        OSError: it has none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    if not all(is_public(address) for address in addresses):
        raise SendError("the receiver's address is private and allow_private is off", permanent=True)
    return addresses[0]
