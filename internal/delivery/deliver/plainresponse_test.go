package deliver

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

var plainResponses = []string{
	"HTTP/1.1 200 OK\r\nDate: Thu, 26 Nov 2026 12:00:00 GMT\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX-Powered-By: Express\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 2\r\n" +
		"ETag: W/\"2-eoX0dku9ba8cNUXvu/DyeabcC+s\"\r\nDate: Thu, 26 Nov 2026 12:00:00 GMT\r\n" +
		"Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\nOK",
	"HTTP/1.1 201 CREATED\r\nServer: gunicorn\r\nDate: Thu, 26 Nov 2026 12:00:00 GMT\r\nConnection: keep-alive\r\n" +
		"Content-Type: application/json\r\nContent-Length: 3\r\n\r\n{}\n",
	"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\ndate: Thu, 26 Nov 2026 12:00:00 GMT\r\n\r\n",
}

func TestResponsesOfCommonServersAreReadWithoutTheParser(t *testing.T) {
	t.Parallel()
	for _, text := range plainResponses {
		head, _, _ := strings.Cut(text, "\r\n\r\n")
		if plain, ok := parsePlainHead([]byte(text)); !ok || plain.size != len(head)+4 {
			t.Errorf("%v, %d bytes of this head were read, want %d:\n%s", ok, plain.size, len(head)+4, text)
		}
	}
}

func TestOtherResponsesAreLeftToTheParser(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, text := range []string{
		"", "HTTP/1.1 200 OK", ok, ok + "Content-Length: 0\r\n", ok + "\r\n", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200\tOK\r\nContent-Length: 0\r\n\r\n",
		ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", ok + "Content-Length: -1\r\n\r\n",
		ok + "Content-Length: +1\r\n\r\n", ok + "Content-Length: 1, 1\r\n\r\n", ok + "Content-Length: 0x1\r\n\r\n",
		ok + "Content-Length: 1_0\r\n\r\n", ok + "Content-Length: 99999999999999999999\r\n\r\n",
		ok + "Content-Length: 0\r\nConnection: close\r\n\r\n",
		ok + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
		ok + "Content-Length: 0\r\n" + outcomeHeader + ": retry\r\n\r\n", ok + "Content-Length: 0\r\nTrailer: X\r\n\r\n",
		ok + "Content-Length: 0\r\nDate: x\r\n Connection: close\r\n\r\n", ok + "Content-Length: 0\r\nServer: \x01\r\n\r\n",
		ok + "Content-Length: 0\r\nServer: a\nConnection: close\r\n\r\n",
		ok + strings.Repeat("Date: x\r\n", maxPlainHeaders) + "Content-Length: 0\r\n\r\n",
	} {
		if plain, ok := parsePlainHead([]byte(text)); ok {
			t.Errorf("%d bytes of this head were read:\n%q", plain.size, text)
		}
	}
}

func FuzzPlainAnswer(f *testing.F) {
	for _, text := range plainResponses {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		plain, ok := parsePlainHead(text)
		if !ok {
			return
		}
		rest := bufio.NewReader(strings.NewReader(string(text)))
		head, err := http.ReadResponse(rest, nil)
		if err != nil {
			t.Fatalf("net/http rejects the head: %v\n%q", err, text)
		}
		if head.StatusCode != plain.status || head.ContentLength != plain.length || head.Close || head.TransferEncoding != nil ||
			head.Trailer != nil || head.Header[outcomeHeader] != nil || rest.Buffered() != len(text)-plain.size {
			t.Errorf("read %+v of\n%q\nnet/http reads %+v", plain, text, head)
		}
	})
}
