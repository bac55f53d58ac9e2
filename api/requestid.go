package api

// RequestIDHeader is the header of every answer with the id of its request. Lines of the log about the request, and a
// refusal, have the same id.
const RequestIDHeader = "X-Request-Id"
