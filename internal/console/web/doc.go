// Package web serves the console's pages: what runs, what waits, what failed and why, what comes next.
//
//	browser ──> console.Server ──> Site ──> screen.load ──> api.Client ──> the same routes of the API
//	            Host, cookie,      │                         (in this process, with the browser's own
//	            cross-origin       └─> templates/NAME.html    cookie: the API decides what is allowed)
//
// A page is a client of the JSON API, as the commands are: it shows what [api.Client] returns, and its forms call
// the methods that the verbs call. There is no second way to read or to change anything, so rights, audit and errors
// are those of the API.
//
// One file holds one screen: a table of [screen] and [act] values, their loading functions and, in templates, the page
// of the same name. [Site] adds the frame around it (navigation, state, result of the last act), and the live stream:
// GET /live renders the page that it is told once a second, and sends it when it differs from what was sent before.
// The script morphs the page into it.
//
// What holds:
//
//   - Pages work without a script: reading, paging, filters and every act are links and forms.
//   - What an app, a message or another server wrote is text, never markup: html/template escapes it by its place.
//   - The policy of each page allows scripts, styles and connections of its own origin only, and no inline code.
//   - The URL holds everything that was chosen: filter, page, tab.
//   - A page shows at most one screenful of rows and reads no more than those. It gives up looking for rows that
//     match after a moment, and offers to look further.
//   - A form that acts is answered with a redirect to a page of this site, with the result in a cookie that is shown
//     once. One that only asks, such as for the difference that a change makes, is answered with a page.
//
// The script and the styles are one file each: htmx and its extension for streams, uPlot, and our own lines, in that
// order. As separate files, the extension can arrive after htmx has started, and the page never becomes live.
// third_party holds the libraries with their licences; SHA256SUMS names them, and a test compares.
package web
