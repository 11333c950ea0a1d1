import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idOf } from '../../evm/test-block.ts'
import { figuresOf } from '../history/test-history.ts'
import { Views } from './views.ts'

function execute(views: Views, number: number, variant: number): void {
  const { contention, conflicts } = figuresOf(number, variant)
  views.blockEnded(number, idOf(number, variant), 100)
  views.blockFolded(contention, conflicts)
}

const shown = (views: Views) =>
  views.recentBlocks(10).map(({ block_number, contention }) => [block_number, contention?.block_id])

test('a rejected proposal has no figures, also where the finalized one of its number was not seen', () => {
  const views = new Views()
  execute(views, 6, 1)
  execute(views, 7, 1)
  views.blockRejected(7, idOf(7, 1))
  assert.equal(views.contentionOf(7), undefined)
  assert.deepEqual(shown(views), [[6, idOf(6, 1)]])
  views.blockRejected(9, idOf(9, 1))
})

test('the figures of a number are those of its finalized proposal, else of the latest one that is not rejected', () => {
  const views = new Views()
  for (const variant of [1, 2, 3]) execute(views, 7, variant)
  assert.deepEqual(shown(views), [[7, idOf(7, 3)]])
  views.blockRejected(7, idOf(7, 3))
  assert.deepEqual(shown(views), [[7, idOf(7, 2)]])
  views.blockFinalized(7, idOf(7, 1))
  views.blockRejected(7, idOf(7, 2))
  assert.deepEqual(shown(views), [[7, idOf(7, 1)]])
})

test('a finalized proposal without figures has none of its siblings', () => {
  const views = new Views()
  execute(views, 7, 1)
  views.blockFinalized(7, idOf(7, 2))
  views.blockRejected(7, idOf(7, 1))
  assert.deepEqual(shown(views), [[7, undefined]])
})
