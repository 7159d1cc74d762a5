def add(a, b):
    if a > 100:
        return None
    return a + b

def unused():
    first = 1
    second = 2
    return first + second
