"""Runs a command from a small process and writes down what it used.

The kernel charges a program for the memory that the process had which executed it: started by a
large one, a command would seem as large. Usage: witness.py FILE COMMAND…; the file gets seconds of
processor time and the peak of memory in the unit of `ru_maxrss`.
"""

import resource
import subprocess
import sys

code = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=file)
sys.exit(code)
