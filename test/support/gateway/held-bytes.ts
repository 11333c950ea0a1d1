import { createHeldBytes } from '../../../src/platform/http/held-bytes.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'

/** For servers whose memory limit is not the subject of the test. */
export const AMPLE_HELD_BYTES = createHeldBytes({ bytesMax: 1e9, ownerBytesMax: 1e9, waitMs: 0 }, systemClock)
