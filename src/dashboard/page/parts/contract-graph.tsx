import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { colours, useColours } from '../../../ui/colours.ts'
import { formatCount } from '../../../ui/format.ts'
import { Panel } from '../../../ui/panel.tsx'
import { useVisible } from '../../../ui/visible.ts'
import { computeContractGraph } from '../../model/contract-graph.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'
import { Explain } from '../ui/explain.tsx'
import { Contract } from '../ui/hex.tsx'
import type { GraphCanvas } from './graph-canvas.ts'

const GRAPH_BLOCKS = 60
const PAIRS_MAX = 8
/** The graph is redrawn at this interval, not with every block. */
const REDRAW_MS = 2000

/** Part 6: contracts touched together. */
export function ContractGraphPart() {
  const { model, version, nowMs, labels } = useStore()
  const box = useRef<HTMLDivElement>(null)
  const canvas = useSignal<GraphCanvas | undefined>(undefined)
  const failure = useSignal<string | undefined>(undefined)
  const colourVersion = useColours()
  const isVisible = useVisible(box)
  void version.value
  const newest = model.contention.newest()?.block_number
  const graph = useMemo(() => computeContractGraph(model.blocks.contentions(GRAPH_BLOCKS)), [newest])

  useEffect(() => {
    const parent = box.current
    if (parent === null) return
    let left = false
    void import('./graph-canvas.ts').then(({ openGraphCanvas }) => {
      if (left) return
      const opened = openGraphCanvas(parent, (address) => goTo({ view: 'contract', address }))
      if (opened === undefined) failure.value = 'This browser has no WebGL: the strongest pairs are listed instead.'
      canvas.value = opened
    })
    return () => {
      left = true
      canvas.value?.close()
    }
  }, [])

  useEffect(() => {
    if (isVisible) canvas.value?.show(graph, { colours: colours(), labels: labels.all.value })
  }, [
    isVisible,
    canvas.value,
    colourVersion,
    labels.all.value,
    Math.floor(nowMs.value / REDRAW_MS),
    graph.nodes.length > 0,
  ])

  return (
    <Panel
      id="graph"
      title="Contracts used together"
      aside={
        <span class="legend">
          contended slots 0
          {[1, 2, 3, 4, 5].map((step) => (
            <i key={step} class={`node-${step}`} />
          ))}
          100 %
          <Explain id="graph" />
        </span>
      }
    >
      <div class="graph-row">
        <div
          ref={box}
          class="graph"
          role="img"
          aria-label={`${graph.nodes.length} contracts joined by ${graph.links.length} pairs. The strongest pairs are in the list beside it.`}
          data-nodes={graph.nodes.length}
        >
          {failure.value !== undefined && <p class="dim">{failure.value}</p>}
        </div>
        <div class="pairs">
          <h3>
            Strongest pairs
            <Explain id="sharedTxns" />
          </h3>
          <ol>
            {graph.links.slice(0, PAIRS_MAX).map(({ a, b, sharedTxns }) => (
              <li key={`${a} ${b}`}>
                <Contract address={a} />
                <Contract address={b} />
                <span class="number">{formatCount(sharedTxns)}</span>
              </li>
            ))}
          </ol>
        </div>
      </div>
    </Panel>
  )
}
