@test "a" { true; }
