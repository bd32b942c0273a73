package webhooks_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdshort/holdshort/sdk/go/webhooks"
)

func Example() {
	body := []byte(`{"requestId": "review_v1", "decision": "approved", "feedback": "Looks good"}`)
	header, err := webhooks.Sign("a-secret-of-21-letters", body, webhooks.SignOptions{WebhookID: "msg_1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The receiver's side.
	if _, err := webhooks.Verify(header, body, []string{"a-secret-of-21-letters"}, time.Now()); err != nil {
		fmt.Println(err)
		return
	}
	read, err := webhooks.ReadDecision(body)
	fmt.Println(read.RequestID, read.Decision, read.Feedback, err)
	// Output: review_v1 approved Looks good <nil>
}

func ExampleVerify() {
	header, _ := webhooks.Sign("a-secret-of-21-letters", nil, webhooks.SignOptions{
		Scheme: webhooks.SchemeTimestamped, Now: time.Unix(1_790_000_000, 0),
	})
	_, err := webhooks.Verify(header, nil, []string{"a-secret-of-21-letters"}, time.Unix(1_790_000_301, 0))
	var refused *webhooks.Error
	fmt.Println(errors.Is(err, webhooks.ErrStaleSignature), errors.As(err, &refused) && refused.Code == "stale_signature")
	// Output: true true
}

func ExamplePayloadDigest() {
	digest, err := webhooks.PayloadDigest([]byte(`{"b": 1, "a": [true, null, "x"]}`))
	fmt.Println(digest, err)
	// Output: 54a65415ad370228851a1da4b31b6fd42dc58b19a50d35cae759325f7388ce64 <nil>
}

func ExampleParseSecrets() {
	secrets, err := webhooks.ParseSecrets("legal:a-secret-of-21-letters,another-of-20-letters")
	fmt.Println(secrets, err)
	// Output: [secret of legal secret of (unnamed)] <nil>
}
