<?php
use PHPUnit\Framework\TestCase;
require_once __DIR__ . "/../src/add.php";
final class AddTest extends TestCase {
    public function testAdds(): void { $this->assertSame(3, add(1, 2)); }
}
