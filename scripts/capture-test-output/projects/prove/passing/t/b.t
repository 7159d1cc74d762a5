use Test::More tests => 2;
print "# Files=9, Tests=99\n";
pass("a");
pass("b");
