package deliver

import (
	"net/http"
	"strings"
	"testing"
)

func TestAnswerHead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, kind, coding, body, want string }{
		{"text", "text/plain; charset=utf-8", "", "\n  database is locked \r\nat line 3\n", "database is locked"},
		{"JSON", "application/json", "", "{\n  \"error\": \"no such order\"\n}\n", `{ "error": "no such order" }`},
		{"a problem", "application/problem+json", "", `{"title":"out of stock"}`, `{"title":"out of stock"}`},
		{"a page", "text/html", "", "<!DOCTYPE html><HTML><head><Title lang=en>KeyError at /worker\n</title><body>...",
			"KeyError at /worker"},
		{"text below the name of the status", "text/plain", "", "Internal Server Error\n\ncard declined", "card declined"},
		{"the name of the status alone", "text/plain", "", "Internal Server Error\n", "Internal Server Error"},
		{"XML", "application/xml", "", `<?xml version="1.0"?><Error><Code>NoStock</Code><Message>a &amp; b</Message></Error>`,
			"NoStock a & b"},
		{"a problem as XML", "application/problem+xml", "", "<problem><title>out of stock</title></problem>", "out of stock"},
	} {
		checkAnswerHead(t, tt.name, tt.kind, tt.coding, tt.body, tt.want)
	}
}

func TestReasonOfAPage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, want string }{
		{"Express, res.send", "card declined: insufficient funds", "card declined: insufficient funds"},
		{"Express, an exception", `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Error</title></head>` +
			"<body>\n<pre>TypeError: no &#39;order&#39;<br> &nbsp; &nbsp;at /app/index.js:7:9</pre>\n</body></html>",
			"TypeError: no 'order'"},
		{"Express in production", "<html><head><title>Error</title></head><body><pre>Internal Server Error</pre></body></html>",
			"Error"},
		{"Flask, a string", "<p>no <b>stock</b></p>", "no stock"},
		{"Flask, an exception", "<!doctype html><html lang=en><title>500 Internal Server Error</title>" +
			"<h1>Internal Server Error</h1><p>The server is either overloaded or broken.</p>",
			"Internal Server Error The server is either overloaded or broken."},
		{"Werkzeug's debugger", "<title>KeyError: 'id' // Werkzeug Debugger</title><h1>KeyError</h1>",
			"KeyError: 'id' // Werkzeug Debugger"},
		{"Django in production", "<html><head><title>Server Error (500)</title></head><body><h1>Server Error (500)</h1>",
			"Server Error (500)"},
		{"Tomcat", "<title>HTTP Status 500 – Internal Server Error</title><style>h1 {color:white}</style>" +
			"<h1>HTTP Status 500 – Internal Server Error</h1><pre>java.io.IOException: disk\n\tat A.b(A.java:3)\n</pre>",
			"java.io.IOException: disk"},
		{"nginx", "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center>" +
			"<hr><center>nginx/1.28</center></body></html>", "502 Bad Gateway nginx/1.28"},
		{"a heading", "<script>var secret = '<h1>x</h1>'</script><h1>Order 7 was <i>sold</i></h1><p>more", "Order 7 was sold"},
		{"no text", "<html><body><img src=x>", ""},
		{"cut off in the title", "<title>x", "x"},
		{"cut off in a tag", "<p>broken <a hre", "broken"},
		{"cut off in a style", "<p>text<style>p {", "text"},
		{"escapes", "<pre>a\x1b[31mb&#27;[0m&#x202e;c</pre>", `a\x1b[31mb\x1b[0m\u202ec`},
		{"long", "<pre>" + strings.Repeat("x", 300), strings.Repeat("x", shownCharacters) + "..."},
		{"deep", strings.Repeat("<div>", 400) + "end", "end"},
	} {
		checkAnswerHead(t, tt.name, "text/html; charset=utf-8", "", tt.body, tt.want)
	}
}

func TestAnswerHeadIsBoundedPrintableText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", shownCharacters)
	for _, tt := range []struct{ name, kind, coding, body, want string }{
		{"no kind", "", "", "oops", "oops"},
		{"no kind and no text", "", "", "\x00\x01\x02", ""},
		{"an image", "image/png", "", "\x89PNG", ""},
		{"compressed", "text/plain", "gzip", "\x1f\x8b", ""},
		{"escapes of a terminal", "text/plain", "", "a\x1b[31mb\x07\u202ec\u0085d", `a\x1b[31mb\a\u202ec d`},
		{"not UTF-8", "text/plain", "", "a\xffb", "ab"},
		{"long", "text/plain", "", long + "y", long + "..."},
		{"as long as may be", "text/plain", "", long, long},
		{"nothing", "text/plain", "", " \n\n", ""},
	} {
		checkAnswerHead(t, tt.name, tt.kind, tt.coding, tt.body, tt.want)
	}
}

func checkAnswerHead(t *testing.T, name, kind, coding, body, want string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Helper()
		header := http.Header{}
		if kind != "" {
			header.Set("Content-Type", kind)
		}
		if coding != "" {
			header.Set("Content-Encoding", coding)
		}
		if got, _ := summarize(header, []byte(body)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestExcerptSaysMoreThanOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, kind, body, want string }{
		{"one line", "text/plain", "database is locked\n", ""},
		{"lines", "text/plain", "\nKeyError\n  at line 3\n", "KeyError\n  at line 3"},
		{"JSON", "application/json", "{\n \"error\": 1 }", "{\n \"error\": 1 }"},
		{"long", "text/plain", strings.Repeat("x", 3*excerptBytes), strings.Repeat("x", excerptBytes)},
		{"long JSON", "application/json", "{\n \"error\": \"" + strings.Repeat("x", 3*excerptBytes) + `"}`,
			("{ \"error\": \"" + strings.Repeat("x", shownCharacters-12) + "...\n{\n \"error\": \"" +
				strings.Repeat("x", 3*excerptBytes))[:excerptBytes]},
		{"a page", "text/html", "<title>KeyError</title><body>...", "KeyError\n..."},
		{"a page of Express", "text/html", "<!DOCTYPE html>\n<html><head>\n<title>Error</title>\n</head><body>\n<pre>Error: no " +
			"address<br> &nbsp; &nbsp;at Layer.handle (/app/<b>index.js</b>:7:9)</pre>\n</body>\n</html>",
			"Error: no address\n    at Layer.handle (/app/index.js:7:9)"},
		{"a page with blocks", "text/html", "<style>h1 {}</style><h1>Server  Error</h1><p>no <b>stock</b></p><table><tr><td>order</td>" +
			"<td>7</td></tr></table>",
			"Server Error no stock order 7\nServer Error\nno stock\norder 7"},
		{"a page of text alone", "text/html", "card declined", ""},
		{"no text", "image/png", "\x89PNG", ""},
	} {
		_, got := summarize(http.Header{"Content-Type": {tt.kind}}, []byte(tt.body))
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
