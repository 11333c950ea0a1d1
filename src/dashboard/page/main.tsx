import { useEffect } from 'preact/hooks'
import { focusSearch } from '../../ui/focus-search.ts'
import { NONE } from '../../ui/format.ts'
import { startPage } from '../../ui/page/start-page.tsx'
import { ThemeButton } from '../../ui/theme-button.tsx'
import { goTo } from './go-to.ts'
import { Contention } from './parts/contention.tsx'
import { ContractGraphPart } from './parts/contract-graph.tsx'
import { GasCharts } from './parts/gas-charts.tsx'
import { Incidents } from './parts/incidents.tsx'
import { Pipeline } from './parts/pipeline.tsx'
import { StatusStrip } from './parts/status-strip.tsx'
import { TopTables } from './parts/top-tables.tsx'
import { TpsChart } from './parts/tps-chart.tsx'
import { createStore, StoreProvider, useStore } from './store.ts'
import { createExplain, ExplainPopover, ExplainProvider } from './ui/explain.tsx'
import { Search } from './ui/search.tsx'
import { ApiView } from './views/api-view.tsx'
import { BlockView } from './views/block-view.tsx'
import { ContractView } from './views/contract-view.tsx'

function Page() {
  const { route } = useStore()
  useKeys()
  const where = route.value
  return (
    <>
      <TopBar />
      {where.view === 'api' ? (
        <ApiView />
      ) : (
        <main class="live">
          <h1 class="sr">Execution, live</h1>
          <StatusStrip />
          <TpsChart />
          <Pipeline />
          <Contention />
          <TopTables />
          <ContractGraphPart />
          <div class="stacked">
            <GasCharts />
            <Incidents />
          </div>
        </main>
      )}
      {where.view === 'block' && <BlockView number={where.number} txn={where.txn} />}
      {where.view === 'contract' && <ContractView address={where.address} />}
      <ExplainPopover />
    </>
  )
}

function TopBar() {
  const { route, model, version } = useStore()
  void version.value
  const hello = model.facts().hello
  const isApi = route.value.view === 'api'
  return (
    <header class="bar">
      <p class="brand">
        Sluice <span class="dim">execution · chain</span> <span class="number dim">{hello?.chain_id ?? NONE}</span>
      </p>
      {hello?.source?.simulated === true && (
        <strong class="simulated" title="The blocks of this page are made up by a simulated chain.">
          simulated data
        </strong>
      )}
      <nav aria-label="Views">
        <button type="button" aria-current={isApi ? undefined : 'page'} onClick={() => goTo({ view: 'live' })}>
          Live
        </button>
        <button type="button" aria-current={isApi ? 'page' : undefined} onClick={() => goTo({ view: 'api' })}>
          API
        </button>
      </nav>
      <Search />
      <ThemeButton />
    </header>
  )
}

/** Space pauses and `/` searches, except in an input or on a control. */
function useKeys(): void {
  const { togglePause } = useStore()
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const at =
        event.target instanceof Element ? event.target.closest('input, textarea, select, button, a, summary') : null
      focusSearch(event)
      if (event.key === ' ' && at === null) {
        event.preventDefault()
        togglePause()
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

startPage({
  createStore,
  StoreProvider,
  page: (
    <ExplainProvider value={createExplain()}>
      <Page />
    </ExplainProvider>
  ),
})
