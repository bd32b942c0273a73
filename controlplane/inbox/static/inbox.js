// What the script adds to pages that work without it: they stay live, and keys act on them.
import * as cards from "./cards.js";
import * as clock from "./clock.js";
import * as decide from "./decide.js";
import * as keys from "./keys.js";
import * as notice from "./notice.js";
import * as rows from "./rows.js";
import * as still from "./still.js";
import * as stream from "./stream.js";

let isFirst = true;

function settled(end) {
  notice.over(end.approval_id);
  rows.settled(end);
  decide.settled(end);
}

// The stream begins, perhaps anew: make up for what the page may have missed.
async function hello({ waiting, feedback, questions, now }) {
  clock.set(now);
  notice.count({ waiting, feedback });
  cards.only(questions);
  const wasFirst = isFirst;
  isFirst = false;
  try {
    await rows.lookAgain(settled);
    if (!wasFirst) await rows.missed();
  } catch {
    stream.retry();
  }
}

const handlers = {
  hello,
  settled,
  asked(one) {
    notice.asked(one.approval_id, one.expires_at);
    rows.asked(one);
  },
  counts: notice.count,
  feedback_asked(one) {
    notice.asked(one.unique_id, one.expires_at);
    cards.asked(one);
  },
  feedback_resolved(one) {
    notice.over(one.unique_id);
    cards.resolved(one);
  },
};

document.body.dataset.live = "";
clock.start();
still.start();
cards.start();
rows.start();
decide.start();
notice.start();
keys.start();
if (document.body.dataset.events) stream.start(handlers);
