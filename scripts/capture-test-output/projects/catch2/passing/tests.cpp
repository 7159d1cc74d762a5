#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
TEST_CASE("adds") { REQUIRE(1 + 1 == 2); }
TEST_CASE("subtracts") { REQUIRE(1 - 1 == 0); }
