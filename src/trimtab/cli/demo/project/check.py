from prices import total

assert total([10, 20]) == 30, "without a discount nothing is taken off"
assert total([10, 20], 10) == 27, f"10 % off 30 is 27, not {total([10, 20], 10)}"
print("All checks pass.")
