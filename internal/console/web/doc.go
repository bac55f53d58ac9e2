// Package web serves the web pages of the console.
//
//	browser ──> console.Server ──> Site ──> screen.load ──> api.Client ──> the same routes of the API
//	            Host, cookie,      │                         (in process, with the browser's own cookie:
//	            cross-origin       └─> templates/NAME.html    the API checks permissions)
//
// Pages read and change everything through [api.Client], like the commands, so permissions, auditing and errors are the
// same. Each screen is one file: a table of [screen] and [act] values, their load functions, and a template of the same
// name. [Site] adds the navigation and the live stream: GET /live renders a page once a second and sends it if it has
// changed; the script morphs the page into it.
//
// Guarantees:
//
//   - Pages work without scripts: reading, paging, filters and actions are links and forms.
//   - The Content-Security-Policy allows scripts, styles and connections of the page's own origin, and no inline code.
//   - The URL contains all choices: filter, page, tab.
//   - A page reads no more rows than it shows. If few rows match a filter, it stops searching after a moment and offers
//     to continue.
//   - An action redirects to a page of this site, which shows the result once. Forms that only ask for something, such
//     as a preview, are answered with a page.
//
// Script and styles are one file each: htmx, its extension for streams, uPlot and our own code, in that order. As
// separate files, the extension could load after htmx has started, and the page would never become live. third_party
// contains the libraries with their licenses; a test checks SHA256SUMS.
package web
