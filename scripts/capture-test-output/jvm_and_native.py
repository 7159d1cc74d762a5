"""Maven Surefire, Gradle, CTest, GoogleTest and Catch2."""

from cases import Case, Runner, counts, text

MAVEN = Runner(
    "maven", "mvn --version", debian=("maven", "libsurefire-java", "junit4", "libjacoco-java", "maven-debian-helper")
)
GRADLE = Runner("gradle", "gradle --version | grep Gradle", debian=("gradle", "junit4"))
CTEST = Runner("ctest", "ctest --version", debian=("cmake",))
GTEST = Runner("googletest", "dpkg-query -W libgtest-dev", debian=("libgtest-dev", "g++"))
CATCH2 = Runner("catch2", "dpkg-query -W catch2", debian=("catch2", "g++"))

JUNIT_DEPENDENCY = (
    "<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId>"
    "<version>4.x</version><scope>test</scope></dependency></dependencies>"
)


def pom(name: str, inside: str) -> str:
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>demo</groupId><artifactId>{name}</artifactId><version>1.0</version>{inside}</project>\n"
    )


SETTINGS = (
    "<properties><maven.compiler.source>8</maven.compiler.source><maven.compiler.target>8</maven.compiler.target>"
    "<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>"
    f"{JUNIT_DEPENDENCY}<build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId>"
    "<version>2.22.3</version></plugin></plugins></build>"
)
PARENT = "<packaging>pom</packaging><modules><module>one</module><module>two</module></modules>"
JAVA_MIXED = text("""
    package demo;
    import org.junit.*;

    public class SumsTest {
        @Test public void adds() { Assert.assertEquals(2, 1 + 1); }
        @Test public void rejects5FailedLogins() {
            System.out.println("Tests run: 99, Failures: 9, Errors: 9, Skipped: 9");
        }
        @Test public void multiplies() { Assert.assertEquals(5, 2 * 2); }
        @Test public void crashes() { throw new IllegalStateException("no database"); }
        @Ignore @Test public void writes() { }
    }
""")
JAVA_PASSING = text("""
    package demo;
    import org.junit.*;

    public class FineTest {
        @Test public void one() { }
        @Test public void two() { }
    }
""")
JAVA_FLAKY = text("""
    package demo;
    import org.junit.*;

    public class FlakyTest {
        private static int tries = 0;
        @Test public void steady() { }
        @Test public void secondTimeLucky() { tries += 1; Assert.assertEquals(2, tries); }
        @Test public void never() { Assert.fail("always"); }
    }
""")
MAVEN_LINE = "mvn -o -B -s /etc/maven/settings.xml -Dmaven.repo.local=/usr/share/maven-repo test"
TEST_DIR = "src/test/java/demo"
SUREFIRE = ("**/target/surefire-reports/*.xml",)
MAVEN_CASES = (
    Case(
        MAVEN,
        "mixed",
        {"pom.xml": pom("demo", SETTINGS), f"{TEST_DIR}/SumsTest.java": JAVA_MIXED},
        MAVEN_LINE,
        counts("Maven Surefire", 2, 1, 1, 1, failures=["SumsTest.multiplies", "SumsTest.crashes"]),
    ),
    Case(
        MAVEN,
        "passing",
        {"pom.xml": pom("demo", SETTINGS), f"{TEST_DIR}/FineTest.java": JAVA_PASSING},
        MAVEN_LINE,
        counts("Maven Surefire", 2),
    ),
    Case(
        MAVEN,
        "retries",
        {"pom.xml": pom("demo", SETTINGS), f"{TEST_DIR}/FlakyTest.java": JAVA_FLAKY},
        f"{MAVEN_LINE} -Dsurefire.rerunFailingTestsCount=2",
        counts("Maven Surefire", 2, 1, flaky=1),
    ),
    Case(
        MAVEN,
        "retries-reports",
        {"pom.xml": pom("demo", SETTINGS), f"{TEST_DIR}/FlakyTest.java": JAVA_FLAKY},
        f"{MAVEN_LINE} -Dsurefire.rerunFailingTestsCount=2",
        counts("JUnit XML", 2, 1, flaky=1),
        SUREFIRE,
    ),
    Case(
        MAVEN,
        "modules",
        {
            "pom.xml": pom("parent", PARENT),
            "one/pom.xml": pom("one", SETTINGS),
            "two/pom.xml": pom("two", SETTINGS),
            f"one/{TEST_DIR}/FineTest.java": JAVA_PASSING,
            f"two/{TEST_DIR}/SumsTest.java": JAVA_MIXED,
        },
        MAVEN_LINE,
        {"runners": [counts("Maven Surefire", 2), counts("Maven Surefire", 2, 1, 1, 1)]},
    ),
    Case(
        MAVEN,
        "reports",
        {
            "pom.xml": pom("parent", PARENT),
            "one/pom.xml": pom("one", SETTINGS),
            "two/pom.xml": pom("two", SETTINGS),
            f"one/{TEST_DIR}/FineTest.java": JAVA_PASSING,
            f"two/{TEST_DIR}/SumsTest.java": JAVA_MIXED,
        },
        MAVEN_LINE,
        {"runners": [counts("JUnit XML", 2), counts("JUnit XML", 2, 1, 1, 1)]},
        SUREFIRE,
    ),
    Case(MAVEN, "none", {"pom.xml": pom("demo", SETTINGS)}, MAVEN_LINE, {"unrecognised": True}),
)

BUILD = text("""
    apply plugin: "java"
    dependencies { testCompile files("/usr/share/java/junit4.jar", "/usr/share/java/hamcrest-core.jar") }
""")
GRADLE_LINE = "gradle --offline --no-daemon --console=plain test"
GRADLE_CASES = (
    Case(
        GRADLE,
        "mixed",
        {"build.gradle": BUILD, "settings.gradle": "", f"{TEST_DIR}/SumsTest.java": JAVA_MIXED},
        GRADLE_LINE,
        counts("Gradle", 2, 2, skipped=1, failures=["demo.SumsTest > crashes", "demo.SumsTest > multiplies"]),
    ),
    Case(
        GRADLE,
        "passing",
        {"build.gradle": BUILD, "settings.gradle": "", f"{TEST_DIR}/FineTest.java": JAVA_PASSING},
        GRADLE_LINE,
        {"unrecognised": True},
    ),
    Case(
        GRADLE,
        "reports",
        {"build.gradle": BUILD, "settings.gradle": "", f"{TEST_DIR}/SumsTest.java": JAVA_MIXED},
        GRADLE_LINE,
        counts("JUnit XML", 2, 2, skipped=1),
        ("build/test-results/test/*.xml",),
    ),
)

CMAKE = text("""
    cmake_minimum_required(VERSION 3.20)
    project(demo NONE)
    enable_testing()
    add_test(NAME adds COMMAND true)
    add_test(NAME prints COMMAND sh -c "echo '100% tests passed, 0 tests failed out of 99'")
    add_test(NAME multiplies COMMAND sh -c "echo '[  PASSED  ] 9 tests.'; exit 1")
    add_test(NAME missing COMMAND no-such-program)
    add_test(NAME slow COMMAND sleep 5)
    set_tests_properties(slow PROPERTIES TIMEOUT 1)
    add_test(NAME writes COMMAND sh -c "exit 77")
    set_tests_properties(writes PROPERTIES SKIP_RETURN_CODE 77)
    add_test(NAME off COMMAND false)
    set_tests_properties(off PROPERTIES DISABLED TRUE)
""")
CMAKE_PASSING = text("""
    cmake_minimum_required(VERSION 3.20)
    project(demo NONE)
    enable_testing()
    add_test(NAME one COMMAND true)
    add_test(NAME two COMMAND true)
""")
CMAKE_FLAKY = text("""
    cmake_minimum_required(VERSION 3.20)
    project(demo NONE)
    enable_testing()
    add_test(NAME steady COMMAND true)
    add_test(NAME lucky COMMAND sh -c "test -e tried || { touch tried; exit 1; }")
""")


def ctest(name: str, source: str, arguments: str, expect: dict[str, object], *reports: str) -> Case:
    line = f"cmake -S . -B build > /dev/null 2>&1; cd build && ctest {arguments}"
    return Case(CTEST, name, {"CMakeLists.txt": source}, line, expect, reports)


CTEST_CASES = (
    ctest("mixed", CMAKE, "", counts("CTest", 2, 1, 2, 2, failures=["multiplies", "missing", "slow"])),
    ctest("output-on-failure", CMAKE, "--output-on-failure", counts("CTest", 2, 1, 2, 2)),
    ctest("verbose", CMAKE, "-V", counts("CTest", 2, 1, 2, 2)),
    ctest("parallel", CMAKE, "-j 4", counts("CTest", 2, 1, 2, 2)),
    ctest("passing", CMAKE_PASSING, "", counts("CTest", 2)),
    ctest("retries", CMAKE_FLAKY, "--repeat until-pass:3", counts("CTest", 2, flaky=1)),
    ctest(
        "none", "cmake_minimum_required(VERSION 3.20)\nproject(demo NONE)\nenable_testing()\n", "", counts("CTest", 0)
    ),
    # CTest writes a missing program as not run
    ctest("junit", CMAKE, "--output-junit ../junit.xml", counts("JUnit XML", 2, 2, 0, 3), "junit.xml"),
)

GTEST_MIXED = text("""
    #include <gtest/gtest.h>
    #include <cstdio>
    TEST(Sums, Adds) { EXPECT_EQ(1 + 1, 2); }
    TEST(Sums, Rejects5FailedLogins) {}
    TEST(Sums, Multiplies) { EXPECT_EQ(2 * 2, 5); }
    TEST(Sums, Writes) { GTEST_SKIP(); }
    TEST(Sums, DISABLED_Reads) {}
    TEST(Loud, Prints) { std::puts("[  PASSED  ] 99 tests.\\n[  FAILED  ] 12 tests, listed below:"); }
""")
GTEST_PASSING = "#include <gtest/gtest.h>\nTEST(Sums, Adds) {}\nTEST(Sums, Subtracts) {}\n"
BUILD_GTEST = "g++ -o tests tests.cpp -lgtest -lgtest_main -pthread"
GTEST_FAILED = ["Sums.Multiplies"]
GTEST_CASES = (
    Case(
        GTEST,
        "mixed",
        {"tests.cpp": GTEST_MIXED},
        f"{BUILD_GTEST} && ./tests",
        counts("GoogleTest", 3, 1, skipped=2, failures=GTEST_FAILED),
    ),
    Case(
        GTEST,
        "colour",
        {"tests.cpp": GTEST_MIXED},
        f"{BUILD_GTEST} && ./tests --gtest_color=yes",
        counts("GoogleTest", 3, 1, skipped=2, failures=GTEST_FAILED),
    ),
    Case(
        GTEST,
        "brief",
        {"tests.cpp": GTEST_MIXED},
        f"{BUILD_GTEST} && ./tests --gtest_brief=1",
        counts("GoogleTest", 3, 1, skipped=2),
    ),
    Case(GTEST, "passing", {"tests.cpp": GTEST_PASSING}, f"{BUILD_GTEST} && ./tests", counts("GoogleTest", 2)),
    Case(
        GTEST,
        "none",
        {"tests.cpp": GTEST_PASSING},
        f"{BUILD_GTEST} && ./tests --gtest_filter=Nothing*",
        counts("GoogleTest", 0),
    ),
    Case(
        GTEST,
        "xml",
        {"tests.cpp": GTEST_MIXED},
        f"{BUILD_GTEST} && ./tests --gtest_output=xml:report.xml",
        counts("JUnit XML", 3, 1, skipped=2, failures=["Sums::Multiplies"]),
        ("report.xml",),
    ),
    Case(
        GTEST,
        "two-programs",
        {"tests.cpp": GTEST_MIXED},
        f"{BUILD_GTEST}; ./tests --gtest_filter=Sums.*; ./tests --gtest_filter=Loud.*",
        {"runners": [counts("GoogleTest", 2, 1, skipped=2), counts("GoogleTest", 1)]},
    ),
)

CATCH_MIXED = text("""
    #define CATCH_CONFIG_MAIN
    #include <catch2/catch.hpp>
    #include <cstdio>
    TEST_CASE("adds") { REQUIRE(1 + 1 == 2); REQUIRE(2 + 2 == 4); }
    TEST_CASE("rejects 5 failed logins") { std::puts("test cases: 9 | 9 failed"); REQUIRE(true); }
    TEST_CASE("multiplies") { REQUIRE(2 * 2 == 5); }
    TEST_CASE("known bug", "[!shouldfail]") { REQUIRE(false); }
""")
CATCH_PASSING = text("""
    #define CATCH_CONFIG_MAIN
    #include <catch2/catch.hpp>
    TEST_CASE("adds") { REQUIRE(1 + 1 == 2); }
    TEST_CASE("subtracts") { REQUIRE(1 - 1 == 0); }
""")
BUILD_CATCH = "g++ -O0 -o tests tests.cpp"
CATCH_CASES = (
    Case(CATCH2, "mixed", {"tests.cpp": CATCH_MIXED}, f"{BUILD_CATCH} && ./tests", counts("Catch2", 2, 1, skipped=1)),
    Case(CATCH2, "compact", {"tests.cpp": CATCH_MIXED}, f"{BUILD_CATCH} && ./tests -r compact", {"unrecognised": True}),
    Case(
        CATCH2,
        "junit",
        {"tests.cpp": CATCH_MIXED},
        f"{BUILD_CATCH} && ./tests -r junit -o report.xml",
        counts("JUnit XML", 2, 2),
        ("report.xml",),
    ),
    Case(CATCH2, "passing", {"tests.cpp": CATCH_PASSING}, f"{BUILD_CATCH} && ./tests", counts("Catch2", 2)),
    Case(CATCH2, "none", {"tests.cpp": CATCH_PASSING}, f"{BUILD_CATCH} && ./tests nothing", counts("Catch2", 0)),
)

CASES = (*MAVEN_CASES, *GRADLE_CASES, *CTEST_CASES, *GTEST_CASES, *CATCH_CASES)
