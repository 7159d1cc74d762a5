#include <gtest/gtest.h>
#include <cstdio>
TEST(Sums, Adds) { EXPECT_EQ(1 + 1, 2); }
TEST(Sums, Rejects5FailedLogins) {}
TEST(Sums, Multiplies) { EXPECT_EQ(2 * 2, 5); }
TEST(Sums, Writes) { GTEST_SKIP(); }
TEST(Sums, DISABLED_Reads) {}
TEST(Loud, Prints) { std::puts("[  PASSED  ] 99 tests.\n[  FAILED  ] 12 tests, listed below:"); }
