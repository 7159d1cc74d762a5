use Test::More tests => 3;
pass("a");
die "no database";
