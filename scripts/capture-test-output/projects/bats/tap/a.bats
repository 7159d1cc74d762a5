@test "adds" { [ 2 -eq 2 ]; }
@test "rejects 5 failed logins" { echo "not ok 9 imaginary"; true; }
@test "multiplies" { echo "ok 12 imaginary"; echo "1..99"; false; }
@test "writes" { skip "later"; }
