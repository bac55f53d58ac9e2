package queuetest_test

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// TestMain shuts out whatever AWS configuration this machine has, and lets the
// checks that wait for a real clock wait at the same time, unless the caller
// said how many.
func TestMain(m *testing.M) {
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	os.Setenv("AWS_SECRET_ACCESS_KEY", "not a secret")
	os.Setenv("AWS_REGION", "us-east-1")
	os.Setenv("AWS_CONFIG_FILE", os.DevNull)
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	os.Setenv("AWS_EC2_METADATA_DISABLED", "true")

	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "64"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
