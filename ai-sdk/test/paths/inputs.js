// What an application can hand over that it should not, and clocks that jump: the receipt stands all the same.
import { CALLS, each, UNPROVEN } from './each.js';

const roomy = (api, kit) => ({ stopWhen: kit.stopWhen({ step_limit: api.isStepCount(8) }) });
const NATURAL = { cause: 'natural', expected: UNPROVEN };
const says = (more) => (api, kit, entry) =>
  kit.start(api, entry, { model: kit.model([{ text: kit.say.text, ...more }]), ...roomy(api, kit) });

export const paths = [
  ...each(CALLS, {
    id: 'odd-labels',
    why: 'a symbol, a function, prose and a getter that throws among the labels: what is no identifier is left out',
    ...NATURAL,
    watch: (kit) => ({
      labels: {
        team: 'desk',
        tier: 2,
        symbol: Symbol(kit.canary),
        call: () => kit.canary,
        prose: kit.canary,
        get trap() {
          throw kit.say.error('LabelTrouble');
        },
      },
    }),
    run: says(),
  }),
  ...each(CALLS, {
    id: 'odd-names',
    why: 'prose where a thread, a contract and a version should be: left out',
    ...NATURAL,
    watch: (kit) => ({ agentVersion: kit.canary, loopPolicy: kit.canary, subject: kit.canary }),
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: kit.model([{ text: kit.say.text }]),
        ...kit.stopcause({ threadId: `${kit.canary} thread` }),
        ...roomy(api, kit),
      }),
  }),
  ...each(CALLS, {
    id: 'nan-usage',
    why: 'a provider that counts NaN tokens',
    ...NATURAL,
    run: says({ usage: [Number.NaN, Number.NaN] }),
  }),
  ...each(CALLS, {
    id: 'negative-usage',
    why: 'a provider that counts less than nothing',
    ...NATURAL,
    run: says({ usage: [-5, 1.5] }),
  }),
  ...each(['generateText'], {
    id: 'odd-metadata',
    why: 'symbols, functions and cycles in the application’s metadata are passed on as they are',
    ...NATURAL,
    run: (api, kit, entry) => {
      const runtimeContext = { note: kit.canary, mark: Symbol(kit.canary), call: () => kit.canary };
      runtimeContext.itself = runtimeContext;
      return kit.start(api, entry, { model: kit.model([{ text: kit.say.text }]), runtimeContext, ...roomy(api, kit) });
    },
  }),
  ...each(CALLS, {
    id: 'clock-jumps',
    why: 'the wall clock jumps back an hour in the middle of the run: its duration comes from the other clock',
    ...NATURAL,
    run: async (api, kit, entry) => {
      const { now } = Date;
      const jump = () => {
        Date.now = () => now() - 3_600_000;
      };
      try {
        const model = kit.model([{ calls: [kit.call('lookup')], before: jump }, { text: kit.say.text }]);
        return await kit.start(api, entry, { model, ...roomy(api, kit) });
      } finally {
        Date.now = now;
      }
    },
  }),
];
