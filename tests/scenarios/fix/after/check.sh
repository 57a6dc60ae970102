python3 -c 'import shop; assert shop.total([1, 2]) == 3' && echo ok
