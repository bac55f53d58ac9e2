package main

// exceptions are packages that may be below the bound, each with the reason.
var exceptions = map[string]string{}
