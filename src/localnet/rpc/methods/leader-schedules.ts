import { setBounded } from '../../../core/bounded-map.ts'
import type { TimeSlices } from '../../../platform/process/time-slices.ts'
import type { Chain } from '../../chain/model.ts'
import { type Json, JsonText } from '../json.ts'
import { createIndexText, type IndexText } from './index-text.ts'

/** The slots of each leader in an epoch, counted from its first slot: of all leaders, or of one. */
export type LeaderSchedules = (request: ScheduleRequest, slices: TimeSlices) => Promise<Json>

type ScheduleRequest = { readonly chain: Chain; readonly epoch: number; readonly identity: string | undefined }

/** The slots of each leader as JSON. */
type Schedule = ReadonlyMap<string, JsonText>

/** A schedule of 432,000 slots is 3 MB of text. The present and the next epoch are asked for, at times the one before. */
const EPOCHS_MAX = 3
/** Slots between two looks at the clock. */
const STEP_SLOTS = 4096

/** Makes the schedule of an epoch once, in slices. It never changes. */
export function createLeaderSchedules(): LeaderSchedules {
  const known = new Map<number, Promise<Schedule>>()
  let indexText: Promise<IndexText> | undefined

  async function makeSchedule(chain: Chain, epoch: number, slices: TimeSlices): Promise<Schedule> {
    indexText ??= createIndexText(chain.slotsPerEpoch, slices)
    return await readSchedule(chain, epoch, { indexText: await indexText, slices })
  }

  function scheduleOf(chain: Chain, epoch: number, slices: TimeSlices): Promise<Schedule> {
    const schedule = known.get(epoch) ?? makeSchedule(chain, epoch, slices)
    known.delete(epoch)
    // The one that was not requested for longest makes room.
    setBounded(known, epoch, schedule, EPOCHS_MAX)
    return schedule
  }

  return async ({ chain, epoch, identity }, slices) => {
    const schedule = await scheduleOf(chain, epoch, slices)
    if (identity === undefined) return Object.fromEntries(schedule)
    const own = schedule.get(identity)
    return own === undefined ? {} : { [identity]: own }
  }
}

async function readSchedule(
  chain: Chain,
  epoch: number,
  { indexText, slices }: { readonly indexText: IndexText; readonly slices: TimeSlices },
): Promise<Schedule> {
  const texts = new Map<string, string[]>()
  const firstSlot = epoch * chain.slotsPerEpoch
  let runStart = 0
  let leader = chain.leaderOf(firstSlot)
  for (let index = 1; index <= chain.slotsPerEpoch; index++) {
    if (index % STEP_SLOTS === 0 && slices.isSpent()) await slices.yield()
    const next = index < chain.slotsPerEpoch ? chain.leaderOf(firstSlot + index) : undefined
    if (next === leader) continue
    const runs = texts.get(leader)
    const run = indexText(runStart, index)
    if (runs === undefined) texts.set(leader, [run])
    else runs.push(run)
    if (next !== undefined) leader = next
    runStart = index
  }
  return new Map([...texts].map(([leader, runs]) => [leader, new JsonText(`[${runs.join()}]`)]))
}
