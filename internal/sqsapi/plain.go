package sqsapi

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"tendril/queue"
)

// plainRequest is a request of the frequent actions, which can be read without the library's decoder: that
// takes longer, and a stack twice as large, which each long poll would keep.
type plainRequest interface {
	// plain reads the value of a parameter, and declines one that is not as SDKs write it.
	plain(r *plainReader, name string)
	// reset makes the request empty again.
	reset()
}

// decodePlain fills request from JSON as SDKs write it. It declines everything else, right or wrong, and leaves the
// request empty then: names in another case, unknown ones, lists and maps that are there twice, null.
func decodePlain(body []byte, request any) bool {
	to, ok := request.(plainRequest)
	if !ok {
		return false
	}
	r := plainReader{text: string(body)}
	r.object(to)
	if r.space(); r.declined || r.at < len(r.text) {
		to.reset()
		return false
	}
	return true
}

// plainReader reads a JSON text from its beginning. Once it has declined it reads nothing more.
type plainReader struct {
	text     string
	at       int
	declined bool
	copied   bool           // the last string does not share the memory of the text
	value    attributeValue // being read
	of       string         // its StringValue
}

func (r *plainReader) decline() { r.declined, r.at = true, len(r.text) }

func (r *plainReader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \n\r\t", r.text[r.at]) >= 0 {
		r.at++
	}
}

// next skips white space, and reports whether c follows, which it skips too.
func (r *plainReader) next(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] <= ' ' {
		r.space()
	}
	found := r.at < len(r.text) && r.text[r.at] == c
	if found {
		r.at++
	}
	return found
}

// need declines unless c follows.
func (r *plainReader) need(c byte) {
	if !r.next(c) {
		r.decline()
	}
}

// more reports whether a list or an object, whose first value is to come or not, has another value before its end.
func (r *plainReader) more(first bool, end byte) bool {
	if r.declined || first && r.next(end) {
		return false
	}
	if first {
		return true
	}
	if r.next(',') {
		return true
	}
	r.need(end)
	return false
}

// object reads the members of an object.
func (r *plainReader) object(to interface{ plain(*plainReader, string) }) {
	r.need('{')
	for first := true; r.more(first, '}'); first = false {
		name := r.string()
		r.need(':')
		to.plain(r, name)
	}
}

// string reads a string. It shares the memory of the whole text unless it has escapes.
func (r *plainReader) string() string {
	r.need('"')
	s, from := "", r.at
	for escaped := true; escaped; { // go on behind a quote that has an odd number of backslashes before it
		n := strings.IndexByte(r.text[r.at:], '"')
		if n < 0 {
			r.decline()
			return ""
		}
		s, r.at = r.text[from:r.at+n], r.at+n+1
		escaped = (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
	}
	r.copied = strings.IndexByte(s, '\\') >= 0
	switch {
	case r.copied:
		unquoted, err := jsontext.AppendUnquote(make([]byte, 0, len(s)), r.text[from-1:r.at])
		if err != nil {
			r.decline()
		}
		return string(unquoted)
	case !printable(s) && (strings.ContainsFunc(s, func(c rune) bool { return c < ' ' }) || !utf8.ValidString(s)):
		r.decline()
	}
	return s
}

// printable reports whether s is ASCII without control characters below the blank. It looks at eight bytes as one word.
func printable(s string) bool {
	const high, blanks = 0x8080808080808080, 0x2020202020202020
	for ; len(s) >= 8; s = s[8:] {
		if word := binary.LittleEndian.Uint64([]byte(s[:8])); (word|(word-blanks))&high != 0 {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= utf8.RuneSelf })
}

// kept reads a string that is kept for longer than the request, and so does not keep the others' memory.
func (r *plainReader) kept() string {
	s := r.string()
	if r.copied {
		return s
	}
	return strings.Clone(s)
}

// integer reads a number from 0 to 999,999,999.
func (r *plainReader) integer() *int {
	r.space()
	from, n := r.at, 0
	for ; r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' && r.at-from < 9; r.at++ {
		n = 10*n + int(r.text[r.at]-'0')
	}
	zero := r.at > from && r.text[from] == '0' && r.at-from > 1
	if r.at == from || zero || r.at < len(r.text) && !strings.ContainsRune(",} \n\r\t", rune(r.text[r.at])) {
		r.decline()
	}
	return &n
}

// strings reads a list of strings, which is there for the first time.
func (r *plainReader) strings(before []string) []string {
	all := []string{}
	if before != nil {
		r.decline()
	}
	r.need('[')
	for first := true; r.more(first, ']'); first = false {
		all = append(all, r.string())
	}
	return all
}

// entries reads the entries of a batch, which are there for the first time.
func entries[Entry any, E interface {
	*Entry
	plain(r *plainReader, name string)
}](r *plainReader, before []Entry) []Entry {
	all := make([]Entry, 0, queue.MaxBatch)
	if before != nil {
		r.decline()
	}
	r.need('[')
	for first := true; r.more(first, ']'); first = false {
		all = append(all, *new(Entry))
		r.object(E(&all[len(all)-1]))
	}
	return all
}

// mostPlain is how many attributes a plain request may have: more than are allowed, so that the refusal is not lost.
const mostPlain = 16

// attributes reads the attributes of a message, which are there for the first time.
func (r *plainReader) attributes(before []queue.Attribute) []queue.Attribute {
	all := make([]queue.Attribute, 0, 2)
	if before != nil {
		r.decline()
	}
	r.need('{')
	for first := true; r.more(first, '}'); first = false {
		name := r.string()
		r.need(':')
		r.value = attributeValue{}
		r.object(&r.value)
		a, err := r.value.attribute(name)
		twice := slices.ContainsFunc(all, func(b queue.Attribute) bool { return a.Name == b.Name })
		if err != nil || twice || len(all) == mostPlain {
			r.decline()
		}
		all = append(all, a)
	}
	return all
}

func (v *attributeValue) plain(r *plainReader, name string) {
	switch name {
	case "StringValue":
		r.of = r.string()
		v.StringValue = &r.of
	case "BinaryValue":
		data, err := base64.StdEncoding.DecodeString(r.string())
		if err != nil || v.BinaryValue != nil {
			r.decline()
		}
		v.BinaryValue = data
	case "DataType":
		v.DataType = r.string()
	default:
		r.decline()
	}
}

func (q *queueRequest) plain(r *plainReader, name string) {
	if name != "QueueUrl" {
		r.decline()
		return
	}
	q.QueueURL = r.string()
}

func (o *outgoing) plain(r *plainReader, name string) {
	switch name {
	case "MessageBody":
		o.MessageBody = r.kept()
	case "DelaySeconds":
		o.DelaySeconds = r.integer()
	case "MessageAttributes":
		o.read = r.attributes(o.read)
	case "MessageSystemAttributes":
		o.readSystem = r.attributes(o.readSystem)
	case "MessageDeduplicationId":
		o.MessageDeduplicationID = new(r.kept())
	case "MessageGroupId":
		o.MessageGroupID = new(r.kept())
	default:
		r.decline()
	}
}

func (in *sendMessageRequest) reset() { *in = sendMessageRequest{} }

func (in *sendMessageRequest) plain(r *plainReader, name string) {
	if name == "QueueUrl" {
		in.queueRequest.plain(r, name)
		return
	}
	in.outgoing.plain(r, name)
}

func (in *sendMessageBatchRequest) reset() { *in = sendMessageBatchRequest{} }

func (in *sendMessageBatchRequest) plain(r *plainReader, name string) {
	if name == "Entries" {
		in.Entries = entries(r, in.Entries)
		return
	}
	in.queueRequest.plain(r, name)
}

func (e *sendEntry) plain(r *plainReader, name string) {
	if name == "Id" {
		e.ID = r.string()
		return
	}
	e.outgoing.plain(r, name)
}

func (in *receiveMessageRequest) reset() { *in = receiveMessageRequest{} }

func (in *receiveMessageRequest) plain(r *plainReader, name string) {
	switch name {
	case "AttributeNames":
		in.AttributeNames = r.strings(in.AttributeNames)
	case "MessageSystemAttributeNames":
		in.MessageSystemAttributeNames = r.strings(in.MessageSystemAttributeNames)
	case "MessageAttributeNames":
		in.MessageAttributeNames = r.strings(in.MessageAttributeNames)
	case "MaxNumberOfMessages":
		in.MaxNumberOfMessages = r.integer()
	case "VisibilityTimeout":
		in.VisibilityTimeout = r.integer()
	case "WaitTimeSeconds":
		in.WaitTimeSeconds = r.integer()
	case "ReceiveRequestAttemptId":
		in.ReceiveRequestAttemptID = r.kept()
	default:
		in.queueRequest.plain(r, name)
	}
}

func (in *deleteMessageRequest) reset() { *in = deleteMessageRequest{} }

func (in *deleteMessageRequest) plain(r *plainReader, name string) {
	if name == "QueueUrl" {
		in.queueRequest.plain(r, name)
		return
	}
	in.deleteEntry.plain(r, name)
}

func (in *deleteMessageBatchRequest) reset() { *in = deleteMessageBatchRequest{} }

func (in *deleteMessageBatchRequest) plain(r *plainReader, name string) {
	if name == "Entries" {
		in.Entries = entries(r, in.Entries)
		return
	}
	in.queueRequest.plain(r, name)
}

func (e *deleteEntry) plain(r *plainReader, name string) {
	switch name {
	case "Id":
		e.ID = r.string()
	case "ReceiptHandle":
		e.ReceiptHandle = r.string()
	default:
		r.decline()
	}
}
