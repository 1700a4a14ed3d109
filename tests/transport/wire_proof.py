"""Proves a token as docs/wire.md says, and compares with a vector: python3 wire_proof.py VECTOR."""
import hashlib
import hmac
import json
import sys


def keyed(token: str, text: str) -> str:
    return hmac.new(token.encode("ascii"), text.encode("ascii"), hashlib.sha256).hexdigest()


def token_id(token: str) -> str:
    return keyed(token, "leat/1\nid")[:16]


def proof(token: str, by: str, dialler_nonce: str, listener_nonce: str, target: str, address: str):
    lines = ["leat/1", by, token_id(token), dialler_nonce, listener_nonce, target, address]
    return keyed(token, "\n".join(lines))


def main() -> None:
    with open(sys.argv[1]) as file:
        v = json.load(file)
    about = (v["diallerNonce"], v["listenerNonce"], v["target"], v["address"])
    assert token_id(v["token"]) == v["id"]
    assert proof(v["token"], "dialler", *about) == v["diallerProof"]
    assert proof(v["token"], "listener", *about) == v["listenerProof"]


main()
