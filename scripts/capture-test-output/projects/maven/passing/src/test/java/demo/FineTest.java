package demo;
import org.junit.*;

public class FineTest {
    @Test public void one() { }
    @Test public void two() { }
}
