// Package web serves the web pages of the console.
//
//	browser ──> console.Server ──> Site ──> screen.load ──> api.Client ──> the same routes of the API
//	            Host, cookie,      │                         (in process, with the browser's own cookie:
//	            cross-origin       └─> templates/NAME.html    the API checks permissions)
//
// Permissions, auditing and errors are the API's, because pages read and change everything through [api.Client]. Each
// part of the console is a file with tables of [screen] and [act] values; a screen's view is the name of its template.
// GET /live renders a page at most once a second and sends it if it has changed.
//
// Guarantees:
//
//   - Pages work without scripts, except for charts, live updates, keyboard shortcuts, the choice of a theme, and
//     buttons that copy a text or select all rows. Without scripts, each action asks for the session's key.
//   - The Content-Security-Policy allows only resources of the page's own origin, and no inline code.
//   - The URL contains all choices: filter, page, tab.
//   - A page reads no more rows than it shows. If few rows match a filter, the search stops early and can be continued.
//   - An action redirects to a page of this site, which shows the result once.
//
// The script is one file, because the htmx extension for streams must not load after htmx has started. third_party
// contains the libraries with their licenses; a test checks SHA256SUMS.
package web
