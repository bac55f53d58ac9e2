package aws

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// FunctionReference is a Lambda function as people write it: a name, a partial or
// a full ARN, each with an alias or a version behind it or without.
type FunctionReference struct {
	// Name is the function's name, always set.
	Name string
	// Qualifier is the alias or the version; "" for what is newest.
	Qualifier string
	// Region and Account are "" where the reference does not tell.
	Region, Account string

	// called is what the API is given as the function's name.
	called string
}

// String returns the name, and the qualifier where there is one.
func (r FunctionReference) String() string {
	if r.Qualifier == "" {
		return r.Name
	}
	return r.Name + ":" + r.Qualifier
}

// ParseFunction reads a function's name (resize, resize:live), partial ARN
// (123456789012:function:resize) or ARN. It asks no network. The error says what
// these look like.
func ParseFunction(s string) (FunctionReference, error) {
	r := FunctionReference{}
	rest, partition, problem := s, "", ""
	switch {
	case strings.HasPrefix(s, "arn:"):
		a, err := arn.Parse(s)
		var found bool
		rest, found = strings.CutPrefix(a.Resource, "function:")
		switch {
		case err != nil:
			problem = err.Error()
		case a.Service != "lambda":
			problem = fmt.Sprintf("it names the service %q, not lambda", a.Service)
		case a.Region == "" || a.AccountID == "":
			problem = "the region or the account is empty"
		case !hostLabel(a.Region):
			problem = fmt.Sprintf("%q is no region", a.Region)
		case !found:
			problem = "it names no function"
		}
		r.Region, r.Account, partition = a.Region, a.AccountID, a.Partition
	case strings.Contains(s, "://"):
		problem = "it is a URL, and functions are invoked by name"
	case strings.Contains(s, ":function:"):
		r.Account, rest, _ = strings.Cut(s, ":function:")
		if !accountID(r.Account) {
			problem = fmt.Sprintf("%q is no account", r.Account)
		}
	}
	var qualified bool
	r.Name, r.Qualifier, qualified = strings.Cut(rest, ":")
	switch {
	case problem != "":
	case !functionName(r.Name):
		problem = fmt.Sprintf("%q is no name of 1 to 64 letters, digits, - and _", r.Name)
	case qualified && r.Qualifier != "$LATEST" && !functionQualifier(r.Qualifier):
		problem = fmt.Sprintf("%q is no alias or version", r.Qualifier)
	}
	if problem != "" {
		return FunctionReference{},
			fmt.Errorf("%q is no Lambda function: %s; write its name, such as resize or resize:live, "+
				"or its ARN, such as arn:aws:lambda:us-east-1:123456789012:function:resize", s, problem)
	}
	r.called = r.Name
	switch {
	case r.Region != "":
		r.called = "arn:" + partition + ":lambda:" + r.Region + ":" + r.Account + ":function:" + r.Name
	case r.Account != "":
		r.called = r.Account + ":function:" + r.Name
	}
	return r, nil
}

func functionName(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(s)
}

func functionQualifier(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`).MatchString(s)
}

func accountID(s string) bool {
	return len(s) == 12 && strings.Trim(s, "0123456789") == ""
}
