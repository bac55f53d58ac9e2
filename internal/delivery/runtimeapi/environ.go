package runtimeapi

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

const version = "$LATEST"

func functionARN(o *Options) string {
	return "arn:aws:lambda:" + o.Region + ":" + o.AccountID + ":function:" + o.Name
}

func environ(o *Options, address string, now time.Time) []string {
	ours := []string{
		"AWS_LAMBDA_RUNTIME_API=" + address,
		"AWS_LAMBDA_FUNCTION_NAME=" + o.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=" + version,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128", // not enforced
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + o.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME=" + now.UTC().Format("2006/01/02") + "/[" + version + "]" + randomHex(16),
		"AWS_REGION=" + o.Region,
		"AWS_DEFAULT_REGION=" + o.Region,
		"LAMBDA_TASK_ROOT=" + o.Dir,
		"TZ=:UTC",
	}

	var env []string
	for _, entry := range o.Env {
		if name, _, _ := strings.Cut(entry, "="); !reserved(ours, name) {
			env = append(env, entry)
		}
	}
	if lookup(o.Env, "LANG") == "" {
		env = append(env, "LANG=en_US.UTF-8")
	}
	return append(env, ours...)
}

// reserved reports whether a variable is in ours, or is specific to one invocation or to Lambda's sandbox.
func reserved(ours []string, name string) bool {
	return name == "_HANDLER" || name == "_X_AMZN_TRACE_ID" || name == "AWS_LAMBDA_MAX_CONCURRENCY" ||
		slices.ContainsFunc(ours, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
}

// traceHeader returns a header that is not sampled, because functions expect one.
func traceHeader(now time.Time) string {
	return "Root=1-" + strconv.FormatInt(now.Unix(), 16) + "-" + randomHex(12) + ";Parent=" + randomHex(8) + ";Sampled=0"
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func lookup(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
