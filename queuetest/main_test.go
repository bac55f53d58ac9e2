package queuetest_test

import (
	"flag"
	"os"
	"testing"

	"tendril/internal/testing/testpeer"
)

// TestMain raises -parallel unless it is set, because checks in real time spend most of their time waiting.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "64"); err != nil {
			panic(err)
		}
	}
	os.Exit(testpeer.Contained(m, "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=not a secret",
		"AWS_REGION=us-east-1").Run())
}
