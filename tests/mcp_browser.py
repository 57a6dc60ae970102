"""A browser for sign-ins in tests: fetches an address and follows redirects, like one that agrees."""

import sys
import urllib.request

if __name__ == "__main__":
    with urllib.request.urlopen(sys.argv[1], timeout=50) as answer:
        answer.read()
