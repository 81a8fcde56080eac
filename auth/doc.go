// Package auth holds what all of authentication and authorisation speaks of: who calls (Principal), what is known of a
// call (Caller), how one becomes the other (Authenticator, Chain), why a call is refused (Error), how long a right
// lasts (Watch), and secrets that cannot be printed (Secret).
//
// The work is done in the packages below it, none of which knows of streams or sessions' content:
//
//	ingress    recognises callers: static tokens, OIDC, client certificates, a mesh proxy's word
//	policy     says which principal may do what with which agent and session
//	egress     the credentials that the gateway sends to Eve
//	servertls  the gateway's TLS, reloaded in place
//	dialguard  refuses to dial addresses that serve a cloud's metadata
//
// Everything fails closed: what is not recognised, not configured or cannot be decided is refused.
package auth
