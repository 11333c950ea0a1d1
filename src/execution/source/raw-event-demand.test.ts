import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { RawEventDemand, type RawEventSelection } from './raw-event-demand.ts'

test('a cursor just before the first complete number is refused: events after it were not produced while no client had selected them', () => {
  const clock = createManualClock()
  const selections: RawEventSelection[] = []
  const onRawEventSelection = (selection: RawEventSelection): void => void selections.push(selection)
  using demand = new RawEventDemand({ lingerMs: 1000 }, { clock, onRawEventSelection })
  const confirm = (seq: number): void => demand.onActive(selections.at(-1) ?? assert.fail(), seq)
  demand.enter(['BlockQC'])
  confirm(90)
  assert(demand.isComplete(['BlockQC'], 100))
  // The client leaves with cursor 100 and does not come back in time. An event without a frame is lost to it before the next client selects it.
  demand.leave(['BlockQC'])
  clock.advance(1000)
  assert(!demand.isActive('BlockQC'))
  demand.enter(['BlockQC'])
  confirm(101)
  assert(!demand.isComplete(['BlockQC'], 100))
  assert(demand.isComplete(['BlockQC'], 101))
})
