#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <cstdio>
TEST_CASE("adds") { REQUIRE(1 + 1 == 2); REQUIRE(2 + 2 == 4); }
TEST_CASE("rejects 5 failed logins") { std::puts("test cases: 9 | 9 failed"); REQUIRE(true); }
TEST_CASE("multiplies") { REQUIRE(2 * 2 == 5); }
TEST_CASE("known bug", "[!shouldfail]") { REQUIRE(false); }
