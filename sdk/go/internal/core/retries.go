package core

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// Patience is how long a plain call is tried: a restart of the control plane takes less.
	Patience = 30 * time.Second
	// Endless is a patience without end.
	Endless time.Duration = -1

	firstDelay  = 0.05
	ownDelayCap = 10.0
	delayCap    = 60.0
	doublings   = 12
	// longestReply is how long, beyond its hold, an answer may take until it counts as lost.
	longestReply = 30 * time.Second
	// fairReply is what every try has, so that a last one is fair.
	fairReply = 5 * time.Second
	anyTime   = time.Duration(math.MaxInt64)
)

// DelayAfter is how long to pause before the next try: doubled each time from 50 ms to 10 s, or what Retry-After says,
// at most 60 s.
//
// reply is what came, nil for nothing; tries how often the call was sent; jitter from 0 to 1.
func DelayAfter(reply *Reply, tries int, jitter float64) time.Duration {
	own := min(ownDelayCap, firstDelay*math.Pow(2, float64(min(tries-1, doublings)))) * (0.5 + jitter/2)
	if reply != nil {
		if asked, ok := retryAfter(reply.Header); ok {
			return seconds(min(delayCap, asked+own))
		}
	}
	return seconds(own)
}

// judge says whether to send again, and after how long.
//
// reply is what came, nil for nothing; left is what the caller still gives, anyTime for as long as it takes.
func judge(reply *Reply, tries int, left time.Duration, jitter float64) (delay time.Duration, again bool) {
	if reply != nil && !triedAgain(reply.Status) {
		return 0, false
	}
	delay = DelayAfter(reply, tries, jitter)
	return delay, delay <= left
}

func triedAgain(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func retryAfter(header http.Header) (float64, bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if number, ok := digits(value); ok {
		return number, true
	}
	// A date is compared with the server's own Date, so a wrong clock here does not matter.
	wanted, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	sent, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0, false
	}
	return max(0, wanted.Sub(sent).Seconds()), true
}

// digits reads a number of seconds; one that is beyond all numbers is only very large.
func digits(value string) (float64, bool) {
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0, false
	}
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return delayCap, true
	}
	return number, true
}

func seconds(value float64) time.Duration {
	return time.Duration(math.Round(value * float64(time.Second)))
}
