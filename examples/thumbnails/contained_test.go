package main

import (
	"os"
	"testing"

	"tendril/testpeer"
)

func TestMain(m *testing.M) { os.Exit(testpeer.Contained(m).Run()) }
