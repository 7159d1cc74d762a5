#include <gtest/gtest.h>
TEST(Sums, Adds) {}
TEST(Sums, Subtracts) {}
