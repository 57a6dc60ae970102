"""Signs the statement by which a client with a private key proves who it is (RFC 7523)."""

import asyncio
import tempfile
import time
from base64 import urlsafe_b64encode

import msgspec

from trimtab.contracts.ids import new_id
from trimtab.mcp.messages import ServerProblem

VALID_SECONDS = 300
HALVES = {"ES256": 32, "ES384": 48, "ES512": 66}
"""The length of each half of a signature on an elliptic curve."""
ALGORITHMS = (*HALVES, "RS256", "RS384", "RS512")


async def sign_assertion(client_id: str, audience: str, key: str, algorithm: str) -> str:
    """Return a signed token. `key` is PEM, or the path of a file. Raises `ServerProblem`."""
    if algorithm not in ALGORITHMS:
        raise ServerProblem(
            f"its signingAlgorithm {algorithm[:40]!r} is not one of {', '.join(ALGORITHMS)}"
        )
    now = int(time.time())
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": now,
        "exp": now + VALID_SECONDS,
        "jti": new_id(),
    }
    text = f"{_encode({'alg': algorithm, 'typ': 'JWT'})}.{_encode(claims)}"
    signature = await _sign(text.encode(), key, f"-sha{algorithm[2:]}")
    if algorithm in HALVES:
        signature = _join_halves(signature, HALVES[algorithm])
    return f"{text}.{_base64(signature)}"


async def _sign(data: bytes, key: str, digest: str) -> bytes:
    if "-----BEGIN" not in key:
        return await _run_openssl(data, key, digest)
    with tempfile.NamedTemporaryFile("w", prefix="trimtab-key-") as file:  # mode 0600
        file.write(key if key.endswith("\n") else f"{key}\n")
        file.flush()
        return await _run_openssl(data, file.name, digest)


async def _run_openssl(data: bytes, path: str, digest: str) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            *("openssl", "dgst", digest, "-sign", path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError:
        raise ServerProblem("signing with its privateKey needs openssl; install it") from None
    signature, errors = await process.communicate(data)
    if process.returncode:
        reason = errors.decode(errors="replace").strip().split("\n")[0][:200]
        raise ServerProblem(f"its privateKey cannot be used ({reason}); correct it")
    return signature


def _join_halves(signature: bytes, size: int) -> bytes:
    """Return the two numbers of a DER signature, each in `size` bytes."""
    at = 3 if signature[1] & 0x80 else 2
    numbers = []
    for _ in range(2):
        length = signature[at + 1]
        numbers.append(int.from_bytes(signature[at + 2 : at + 2 + length]))
        at += 2 + length
    return b"".join(number.to_bytes(size) for number in numbers)


def _encode(value: object) -> str:
    return _base64(msgspec.json.encode(value))


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
