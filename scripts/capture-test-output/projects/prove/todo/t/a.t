use Test::More tests => 2;
pass("a");
TODO: { local $TODO = "known bug"; fail("b"); }
