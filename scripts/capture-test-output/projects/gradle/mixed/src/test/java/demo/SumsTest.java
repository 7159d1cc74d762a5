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
