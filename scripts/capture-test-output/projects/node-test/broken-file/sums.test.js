require("./nowhere");
