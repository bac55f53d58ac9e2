package config

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tendril/internal/config/yamlfile"
	"tendril/internal/delivery/filter"
	"tendril/internal/delivery/webhook"
)

// A rule validates and normalizes a value. Its error completes a sentence that starts with the value: "... is not a
// URL".

const (
	maxEnvironmentName = 64
	maxQueueName       = 80
	maxPath            = 2048
	maxMimeType        = 255
	fifoSuffix         = ".fifo"
	maxFunctionName    = 64
	maxCommand         = 4096
	maxKeyPrefix       = 512 // of the 1024 bytes of a key
	allowedQueueName   = "1 to 80 letters, digits, \"_\" and \"-\", optionally ending in .fifo"
	allowedAddresses   = "an address and a port, such as 127.0.0.1:9324, unix:PATH, or both separated by a comma"
)

type fault struct {
	found bool
	text  string
}

func valid(text string, faults ...fault) (string, error) {
	for _, f := range faults {
		if f.found {
			return "", errors.New(f.text)
		}
	}
	return text, nil
}

func environmentName(text string) (string, error) {
	return valid(text, fault{len(text) > maxEnvironmentName, "is too long"},
		fault{!isWord(text), "contains characters not allowed in a name"})
}

func queueName(text string) (string, error) {
	return valid(text, fault{strings.Contains(text, ":"), "is not a name: use queue-url for a URL or an ARN"},
		fault{len(text) > maxQueueName, "is too long"},
		fault{!isWord(strings.TrimSuffix(text, fifoSuffix)), "contains characters not allowed in a name"})
}

func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
}

func queueURL(text string) (string, error) {
	if strings.HasPrefix(text, "arn:") {
		parts := strings.Split(text, ":")
		if len(parts) != 6 || !isWord(parts[1]) || parts[2] != "sqs" || !isWord(parts[3]) || !isWord(parts[4]) {
			return "", errors.New("is not an ARN of a queue, such as arn:aws:sqs:eu-west-1:123456789012:jobs")
		}
		if _, err := queueName(parts[5]); err != nil {
			return "", errors.New("does not end with a queue name")
		}
		return text, nil
	}

	u, err := plainURL(text)
	if err != nil {
		return "", err
	}

	_, err = queueName(lastSegment(u.Path))
	return valid(text, fault{u.RawQuery != "", "has a query, which is not allowed in a queue URL"},
		fault{err != nil, "does not end with a queue name"})
}

func functionName(text string) (string, error) {
	resource, ok := functionResource(text)
	if !ok {
		return "", errors.New("is not an ARN of a function, such as " +
			"arn:aws:lambda:eu-west-1:123456789012:function:resize-images")
	}

	name, version, versioned := strings.Cut(resource, ":")
	validVersion := version == "$LATEST" || isWord(version) && len(version) <= 2*maxFunctionName
	return valid(text,
		fault{strings.ContainsAny(text, " /"), "is not the name of a function on AWS; use lambda for a local program"},
		fault{strings.Contains(version, ":") || !isWord(name), "is not a function name"},
		fault{len(name) > maxFunctionName, "is too long"},
		fault{versioned && !validVersion, "does not end with a version or alias"})
}

// functionResource returns NAME or NAME:VERSION.
func functionResource(text string) (resource string, ok bool) {
	parts := strings.SplitN(text, ":", 5)
	switch {
	case parts[0] == "arn":
		if len(parts) < 5 || !isWord(parts[1]) || parts[2] != "lambda" || !isWord(parts[3]) {
			return "", false
		}
		text = parts[4]
	case len(parts) <= 2:
		return text, true
	}

	account, rest, _ := strings.Cut(text, ":")
	resource, isFunction := strings.CutPrefix(rest, "function:")
	_, err := accountID(account)
	return resource, isFunction && err == nil
}

func commandLine(text string) (string, error) {
	text = strings.TrimSpace(text)
	return valid(text, fault{text == "", "is not a command"}, fault{hasControl(text), "contains control characters"},
		fault{len(text) > maxCommand, "is too long"})
}

func bucketName(text string) (string, error) {
	return valid(text, fault{strings.Contains(text, "://"), "is a URL: use only the name of the bucket"},
		fault{len(text) < 3 || len(text) > 63 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" ||
			strings.Trim(text, ".-") != text || strings.Contains(text, ".."),
			"is not a list of buckets: a name has 3 to 63 lower-case letters, digits, \".\" and \"-\""})
}

const s3Scheme = "s3://"

func archiveLocation(text string) (string, error) {
	place, inBucket := strings.CutPrefix(text, s3Scheme)
	if !inBucket {
		_, err := valid(text, fault{strings.Contains(text, "://"), "is not a folder or an s3:// URL"})
		if err != nil {
			return "", err
		}
		return filePath(text)
	}
	place = strings.TrimRight(place, "/")
	bucket, prefix, _ := strings.Cut(place, "/")
	_, wrong := bucketName(bucket)
	return valid(s3Scheme+place, fault{wrong != nil, "has no bucket name of 3 to 63 lower-case letters, digits, \".\" and \"-\""},
		fault{len(prefix) > maxKeyPrefix, "is too long"},
		fault{!isPrintableASCII(prefix) || strings.ContainsAny(prefix, " *?$\\") || path.Clean("/"+prefix) != "/"+prefix,
			"has a prefix with spaces, wildcards, or empty or dot segments"})
}

// VersionsBucket returns the S3 bucket and key prefix of Versions, or "" if that is not in S3.
func (s *Settings) VersionsBucket() (bucket, prefix string) {
	place, _ := strings.CutPrefix(s.Versions, s3Scheme)
	if place == s.Versions {
		return "", ""
	}
	bucket, prefix, _ = strings.Cut(place, "/")
	return bucket, prefix
}

func lastSegment(s string) string {
	return s[strings.LastIndexAny(s, "/:")+1:]
}

func endpointURL(text string) (string, error) {
	if socket, found := strings.CutPrefix(text, "unix:"); found {
		return valid(text, fault{strings.Trim(socket, "/") == "" || hasControl(socket), `has no valid socket path after "unix:"`})
	}
	u, err := plainURL(text)
	if err != nil {
		return "", err
	}
	return valid(text, fault{u.RawQuery != "", "has a query, which is not allowed in an endpoint"})
}

func targetURL(text string) (string, error) {
	if socket, found := strings.CutPrefix(text, "unix://"); found {
		return valid(text, fault{!filepath.IsAbs(socket) || hasControl(socket), `has no valid absolute path after "unix://"`})
	}
	u, err := plainURL(text)
	if err != nil {
		return "", err
	}
	ip, _ := netip.ParseAddr(u.Hostname()) // names are checked when they are resolved
	return valid(text, fault{u.RawQuery != "" || u.ForceQuery, "has a query: set it with http-path"},
		fault{ip.IsUnspecified(), "is an address to listen on: use 127.0.0.1 for an app on this machine"},
		fault{ip.IsLinkLocalUnicast() || ip.IsMulticast(),
			"is a link-local address, to which tendril never posts"})
}

func plainURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return nil, errors.New("is not a URL")
	}
	_, err = valid(text,
		fault{u.User != nil, "contains a user name or password, which would be visible in logs and process lists"},
		fault{u.Fragment != "" || strings.HasSuffix(text, "#"), "has a fragment (#), which is never sent"},
		fault{u.Hostname() == "", "has no host"},
		fault{u.Port() != "" && !isPort(u.Port(), 1), "has no port from 1 to 65535"},
		fault{u.Scheme != "http" && u.Scheme != "https", "is not an http or https URL"})
	return u, err
}

func isPort(text string, lowest uint64) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n >= lowest
}

func httpPath(text string) (string, error) {
	if !strings.HasPrefix(text, "/") {
		text = "/" + text
	}
	path, _, _ := strings.Cut(text, "?")
	if _, err := valid(text, fault{len(text) > maxPath, "is too long"},
		fault{!isPrintableASCII(text) || strings.ContainsAny(text, " \"<>#"),
			"contains characters not allowed in a path: percent-encode them"}); err != nil {
		return "", err
	}
	return text, checkPath(path)
}

// checkPath checks a path after each round of percent-decoding, because servers may decode repeatedly.
func checkPath(path string) error {
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return errors.New("has a % without two hexadecimal digits: use %25")
	}

	for {
		if err := checkSegments(path); err != nil {
			return err
		}
		if decoded == path {
			return nil
		}
		path = decoded
		decoded, err = url.PathUnescape(path)
		if err != nil {
			return checkSegments(path)
		}
	}
}

func checkSegments(path string) error {
	switch {
	case hasControl(path):
		return errors.New("contains control characters")
	case strings.Contains(path, "//") || strings.Contains(path, "\\"):
		return errors.New("could be read as the path of another host: it contains // or a backslash")
	}
	for segment := range strings.SplitSeq(path, "/") {
		if name, _, _ := strings.Cut(segment, ";"); name == ".." || name == "." {
			return errors.New("contains a dot or dot-dot segment")
		}
	}
	return nil
}

func mimeType(text string) (string, error) {
	return valid(text, fault{text == "" || !isPrintableASCII(text), "cannot be sent in a header"},
		fault{len(text) > maxMimeType, "is too long"})
}

func region(text string) (string, error) {
	return valid(text, fault{!isWord(text) || strings.Contains(text, "_") || text != strings.ToLower(text) ||
		len(text) > maxEnvironmentName, "is not a region name"})
}

func tableName(text string) (string, error) {
	return valid(text, fault{len(text) < 3 || len(text) > 255 || !isWord(strings.ReplaceAll(text, ".", "_")),
		"is not a table name"})
}

func accountID(text string) (string, error) {
	return valid(text, fault{len(text) != 12 || strings.Trim(text, "0123456789") != "", "is not an account ID"})
}

func healthcheck(text string) (string, error) {
	kind, rest, found := strings.Cut(text, ":")
	kind = strings.ToUpper(kind)
	port, path, hasPath := strings.Cut(rest, "/")
	if !found || !isPort(port, 1) {
		return "", errors.New("has no port from 1 to 65535")
	}

	switch {
	case kind == "TCP" && !hasPath:
		return kind + ":" + port, nil
	case kind == "HTTP":
		path, err := httpPath("/" + path)
		return kind + ":" + port + path, err
	}

	return "", errors.New("is not a health check")
}

func endpointAddresses(text string) (string, error) {
	var address, socket string
	for part := range strings.SplitSeq(text, ",") {
		place, isSocket := strings.CutPrefix(strings.TrimSpace(part), unixPrefix)
		parse := listenAddress
		if isSocket {
			parse = socketAddress
		}

		parsed, err := parse(place)
		switch {
		case err != nil:
			return "", err
		case isSocket && socket == "":
			socket = parsed
		case !isSocket && address == "":
			address = parsed
		default:
			return "", errors.New("has more than one address or socket")
		}
	}
	return strings.Trim(address+","+socket, ","), nil
}

func socketAddress(path string) (string, error) {
	path, err := folderPath(path)
	return unixPrefix + path, err
}

func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func listenAddress(text string) (string, error) {
	if _, err := strconv.Atoi(text); err == nil {
		text = "127.0.0.1:" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", errors.New("is not HOST:PORT")
	}
	_, err = netip.ParseAddr(host)
	return valid(text, fault{!isPort(port, 0), "has no port from 0 to 65535"},
		fault{host != "localhost" && err != nil, "has no IP address to listen on"})
}

func token(text string) (string, error) {
	return valid(text, fault{text == placeholder, "is the placeholder from a generated file: replace it with a " +
		"secret, such as the output of 'openssl rand -hex 32'"},
		fault{len(text) < 16 || len(text) > 256, "has the wrong length"},
		fault{strings.Contains(text, " ") || !isPrintableASCII(text), "contains other characters"},
		fault{strings.Trim(text, text[:min(1, len(text))]) == "", "repeats a single character, which is easy to guess"})
}

func fleetKey(text string) (string, error) {
	for part := range strings.SplitSeq(text, ",") {
		if _, err := token(part); err != nil {
			return "", err
		}
	}
	return text, nil
}

const placeholder = "REPLACE-ME"

func signingKey(text string) (string, error) {
	if strings.Contains(text, "EXAMPLE") {
		return "", errors.New("is an example from the documentation, which is public")
	}
	return text, webhook.CheckKey(text)
}

// newSigningKey returns a key of 24 bytes, with 160 random bits.
func newSigningKey() string { return "whsec_" + (rand.Text() + rand.Text())[:32] }

// secret makes v's suggested value random in each error message, because users copy it from there.
func secret(v value, sample func() string) value {
	v.sample = sample
	return v
}

func sharedSecret(field *string, rule func(string) (string, error)) value {
	return secret(checked(field, "16 to 256 printable ASCII characters without spaces", rule), rand.Text)
}

const exampleFilter = `{"body":{"kind":["order"]}}`

func filterValue(field *string) value {
	v := checked(field, "a pattern such as "+exampleFilter+", the path of a pattern file, or off", filterPattern)
	v.nearest = func(string) string { return "'" + exampleFilter + "'" }
	return v
}

func filterPattern(text string) (string, error) {
	if text == Off {
		return "", nil
	}

	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		data, _, err := yamlfile.ReadFile(text, maxFile)
		if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
			err = wrong.Err // the message already contains the path
		}
		if err != nil {
			return "", fmt.Errorf("is neither a pattern nor a readable file: %w", err)
		}
		text = string(data)
	}

	if _, err := filter.Parse(text); err != nil {
		return "", fmt.Errorf("is not a filter: %w", err)
	}

	var line bytes.Buffer
	err := json.Compact(&line, []byte(text))
	return line.String(), err
}

func network(text string) (string, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()).String(), nil
	}
	p, err := netip.ParsePrefix(text)
	return valid(p.Masked().String(), fault{err != nil, "is not a network"},
		fault{err == nil && p.Bits() == 0, "would trust every address"})
}

func hostName(text string) (string, error) {
	if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return ip.String(), nil
	}
	return valid(strings.ToLower(text), fault{strings.Contains(text, "://"), "is a URL: use only its host name"},
		fault{strings.Contains(text, ":"), "has a port: all ports are allowed"},
		fault{len(text) > 253 || !isWord(strings.ReplaceAll(text, ".", "_")), "is not a host name"})
}

func consoleAddress(text string) (string, error) {
	if on, err := parseSwitch(text); err == nil && !on && text != "0" {
		return Off, nil
	}
	return listenAddress(text)
}

func folderPath(text string) (string, error) {
	if _, err := filePath(text); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(text)
	return valid(abs, fault{err != nil, "cannot be converted to an absolute path"})
}

func file(field *string) value { return checked(field, "a file path", filePath) }

func optionalFile(field *string) value {
	return checked(field, "a file path, or off", func(text string) (string, error) {
		if text == Off {
			return "", nil
		}
		return filePath(text)
	})
}

func filePath(text string) (string, error) {
	return valid(text, fault{text == "" || hasControl(text), "is not a path"})
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func isPrintableASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func scaleTarget(text string) (string, error) {
	switch text {
	case ScaleNone, ScaleAuto, ScaleProcesses, ScalePublish:
		return text, nil
	}
	if name, found := strings.CutPrefix(text, ScaleService); found {
		cluster, service, _ := strings.Cut(name, "/")
		return valid(text, fault{!isECSName(cluster) || !isECSName(service), "does not name a cluster and a service"})
	}
	group, found := strings.CutPrefix(text, ScaleGroup)
	return valid(text, fault{!found, "cannot be scaled"},
		fault{group == "" || len(group) > 255 || hasControl(group) || strings.ContainsAny(group, ":/"), "has no group name"})
}

// isECSName follows the Amazon ECS API Reference, CreateCluster and CreateService.
func isECSName(name string) bool { return isWord(name) && len(name) <= 255 }

const (
	lowestFinal  = 200 // lower codes are informational
	highestFinal = 599
)

type codeRange struct{ first, last int }

func (r codeRange) String() string {
	if r.first == r.last {
		return strconv.Itoa(r.first)
	}
	return fmt.Sprintf("%d-%d", r.first, r.last)
}

func normalizeCodes(text string) (string, error) {
	var ranges []codeRange
	for item := range strings.SplitSeq(text, ",") {
		r, err := parseCodes(strings.TrimSpace(item))
		if err != nil {
			return "", err
		}
		ranges = append(ranges, r)
	}

	var texts []string
	for _, r := range mergeRanges(ranges) {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, ","), nil
}

func mergeRanges(ranges []codeRange) (merged []codeRange) {
	for _, r := range slices.SortedFunc(slices.Values(ranges), func(a, b codeRange) int { return a.first - b.first }) {
		if n := len(merged); n > 0 && r.first <= merged[n-1].last+1 {
			merged[n-1].last = max(merged[n-1].last, r.last)
		} else {
			merged = append(merged, r)
		}
	}
	return merged
}

func terminalCodes(text string) (string, error) {
	if text == Off || text == "" {
		return "", nil
	}
	return normalizeCodes(text)
}

func parseCodes(item string) (codeRange, error) {
	if class, found := strings.CutSuffix(strings.ToLower(item), "xx"); found && len(class) == 1 {
		item = class + "00-" + class + "99"
	}

	first, last, isRange := strings.Cut(item, "-")
	if !isRange {
		last = first
	}

	a, errA := strconv.ParseUint(strings.TrimSpace(first), 10, 31)
	b, errB := strconv.ParseUint(strings.TrimSpace(last), 10, 31)
	switch {
	case errA != nil || errB != nil:
		return codeRange{}, errors.New("is not a list of statuses")
	case a < lowestFinal || b > highestFinal:
		return codeRange{}, errRange
	case a > b:
		return codeRange{}, fmt.Errorf("has a reversed range, %d-%d", a, b)
	}

	return codeRange{int(a), int(b)}, nil
}

func userName(text string) (string, error) {
	const longest = 32 // useradd's limit
	name, group, hasGroup := strings.Cut(text, ":")
	isID := func(s string) bool {
		_, err := strconv.ParseUint(s, 10, 31)
		return err == nil
	}
	return valid(text, fault{hasGroup && (!isID(name) || !isID(group)), "is not UID:GID"},
		fault{len(name) > longest || name == "" || strings.HasPrefix(name, "-") ||
			!isWord(strings.ReplaceAll(strings.TrimSuffix(name, "$"), ".", "_")), "is not the name or number of a user"})
}

func resources() []string {
	return []string{"as", "core", "cpu", "data", "fsize", "memlock", "nofile", "nproc", "stack"}
}

func processLimit(text string) (string, error) {
	name, value, found := strings.Cut(text, "=")
	switch {
	case !found:
		return "", errors.New("has a limit without a value: use nofile=1024")
	case !slices.Contains(resources(), name):
		return "", errors.New("has an unknown limit: use " + orList(resources()))
	case value == "unlimited":
		return text, nil
	}

	n, err := parseSize(value)
	if err != nil || n < 0 {
		return "", errors.New("has a value that is not a number, size or unlimited")
	}

	return name + "=" + strconv.FormatInt(n, 10), nil
}

func appLogFolder(text string) (string, error) {
	if text == Off {
		return "", nil
	}
	return folderPath(text)
}
