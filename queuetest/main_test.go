package queuetest_test

import (
	"os"
	"testing"

	"tendril/internal/testing/testpeer"
)

// Checks in real time mostly wait, so many run at once.
func TestMain(m *testing.M) {
	testpeer.Parallel(64)
	os.Exit(testpeer.Contained(m, "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=not a secret",
		"AWS_REGION=us-east-1").Run())
}
