import type { GapEvent } from '../client/stream-event.ts'
import { formatCount } from './format.ts'

/** What is missing and why, in one sentence. */
export function gapWords({ reason, frames, warning }: GapEvent): string {
  switch (reason) {
    case 'source': {
      if (warning?.type !== 'ring_gap') return 'The source lost events.'
      const lost = warning.to_seqno - warning.from_seqno + 1
      return `The source lost ${formatCount(lost)} events (ring ${warning.from_seqno} to ${warning.to_seqno}); ${formatCount(warning.blocks_dropped)} blocks have no figures.`
    }
    case 'restart':
      return 'The node was restarted: windows and counters begin again.'
    case 'slow':
      return `This page did not keep up: the service dropped ${formatCount(frames)} frames for it.`
    case 'window': {
      if (warning?.type !== 'resume_out_of_window')
        return 'Reconnected without a cursor: what happened in between is missing.'
      return `The service no longer has what was missed (${WINDOW_WORDS[warning.reason]}): shown from a snapshot on.`
    }
    case 'buffer':
      return `This page dropped ${formatCount(frames)} unread frames of its own buffer.`
  }
}

const WINDOW_WORDS = {
  too_old: 'the cursor is older than its buffer',
  ahead: 'the cursor is ahead of it',
  invalid: 'the cursor is not a number of it',
  not_recorded: 'those events were not kept',
} as const
