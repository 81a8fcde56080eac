// Package ingress recognises callers.
//
// Each way to be recognised is an auth.Authenticator; New makes one chain of those that are configured, always in this
// order: bearer tokens (static ones, then those of OIDC issuers), the word of a mesh proxy, client certificates, nothing
// at all. What a caller says of itself comes before what its connection says, and a credential that does not hold is
// refused there and then.
package ingress
