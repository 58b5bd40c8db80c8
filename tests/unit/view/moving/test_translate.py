"""Queues of Kueue, Volcano and KAI as Tenants: what they say, and what is said of the rest."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.cluster.tenancy import Tenant
from synergy_api.cluster.tenant_tree import tenant_tree
from synergy_api.reasons import Reason
from synergy_api.resources.tenant import TenantSpec
from synergy_view.moving import UNTYPED, Choices, Translation, translate
from synergy_view.moving.jobs.translate import is_job

Json = dict[str, Any]
EXAMPLES = Path(__file__).parents[4] / "examples" / "moving"
A100 = Choices({UNTYPED: "A100"})
GPU = "nvidia.com/gpu"


def example(name: str) -> list[Json]:
    """The queues of an example, without its jobs."""
    return [item for item in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()) if not is_job(item)]


def specs(found: Translation) -> dict[str, Json]:
    return {tenant["metadata"]["name"]: tenant["spec"] for tenant, _ in found.tenants}


def remarks(found: Translation) -> list[tuple[str, str]]:
    listed = [remark for _, remarks in found.tenants for remark in remarks]
    return [(remark.source, remark.path) for remark in (*listed, *found.others)]


def said(found: Translation) -> str:
    listed = [remark for _, remarks in found.tenants for remark in remarks]
    return "\n".join(f"{remark.source} {remark.path}: {remark.message}" for remark in (*listed, *found.others))


@pytest.mark.parametrize("name", ["kueue", "volcano", "kai"])
def test_the_tree_of_each_example_fits_a_cluster_of_24(name: str) -> None:
    found = specs(translate(example(name), A100))
    tree = tenant_tree([Tenant(name, TenantSpec.model_validate(spec)) for name, spec in found.items()], {"A100": 24})
    for one in tree.tenants.values():
        assert one.link is None or one.link.reason is Reason.PARENT_FOUND
        assert one.kept is not None
        assert one.kept.reason is Reason.GUARANTEE_COVERED


class TestKueue:
    def test_quotas_are_guarantees_and_a_cohort_is_the_parent(self) -> None:
        found = specs(translate(example("kueue"), Choices()))
        assert found == {
            "research": {"guarantee": {"A100": 16}, "limit": {"A100": 16}, "lending": {"A100": 0}},
            "vision": {
                "parent": "research",
                "guarantee": {"A100": 8},
                "borrowing": {"A100": 4},
                "lending": {"A100": 6},
                "weight": 2.0,
                "namespaces": ["vision"],
            },
            "speech": {"parent": "research", "guarantee": {"A100": 4}, "namespaces": ["speech"]},
            "robotics": {
                "guarantee": {"A100": 8},
                "limit": {"A100": 8},
                "lending": {"A100": 0},
                "namespaces": ["robotics"],
            },
        }

    def test_each_line_without_counterpart_is_named(self) -> None:
        found = translate(example("kueue"), Choices())
        quotas = "spec.resourceGroups[0].flavors[0].resources"
        assert remarks(found) == [
            ("Cohort research", ""),
            ("ClusterQueue vision", f"{quotas}[0].name"),
            ("ClusterQueue vision", f"{quotas}[1].name"),
            ("ClusterQueue vision", "spec.queueingStrategy"),
            ("ClusterQueue vision", "spec.preemption"),
            ("ClusterQueue robotics", ""),
            ("WorkloadPriorityClass urgent", "value"),
        ]

    def queue(self, name: str = "q", flavor: str = "gpus", gpus: Any = 2, **spec: Any) -> Json:
        quota = {"name": GPU, "nominalQuota": gpus}
        groups = [{"coveredResources": [GPU], "flavors": [{"name": flavor, "resources": [quota]}]}]
        full = {"resourceGroups": groups, **spec}
        return {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": full,
        }

    def cohort(self, name: str, **spec: Any) -> Json:
        return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": name}, "spec": spec}

    def test_a_flavor_s_type_is_as_chosen_or_as_it_is_called(self) -> None:
        found = translate([self.queue(flavor="spot")], Choices({"spot": "V100"}))
        assert specs(found)["q"]["guarantee"] == {"V100": 2}
        found = translate([self.queue(flavor="spot")], Choices())
        assert specs(found)["q"]["guarantee"] == {"spot": 2}
        assert "give --gpu-type spot=TYPE" in said(found)

    def test_cohorts_of_cohorts_add_up_and_only_the_root_is_closed(self) -> None:
        objects = [
            self.cohort("top"),
            self.cohort("mid", parentName="top", fairSharing={"weight": "0.75"}),
            self.queue("a", gpus=3, cohortName="mid"),
            self.queue("b", gpus=2, cohortName="top"),
        ]
        found = specs(translate(objects, Choices({"gpus": "V100"})))
        assert found["mid"] == {"parent": "top", "weight": 0.75, "guarantee": {"V100": 3}}
        assert (found["top"]["guarantee"], found["top"]["limit"]) == ({"V100": 5}, {"V100": 5})

    def test_a_cohort_that_is_only_named_is_made_and_may_have_a_queue_s_name(self) -> None:
        found = specs(translate([self.queue("team", cohort="team")], Choices({"gpus": "V100"})))
        assert found["team"]["parent"] == "team-cohort"
        assert found["team-cohort"]["guarantee"] == {"V100": 2}

    def test_a_circle_of_cohorts_ends(self) -> None:
        objects = [self.cohort("x", parentName="y"), self.cohort("y", parentName="x"), self.queue(cohortName="x")]
        assert specs(translate(objects, Choices()))["x"]["parent"] == "y"

    def test_without_a_local_queue_the_selector_says_the_namespaces_unless_it_takes_all(self) -> None:
        selector = {"matchLabels": {"team": "a"}}
        assert (
            specs(translate([self.queue(namespaceSelector=selector)], Choices()))["q"]["namespaceSelector"] == selector
        )
        found = translate([self.queue(namespaceSelector={})], Choices())
        assert "namespaceSelector" not in specs(found)["q"]
        assert "name them with --namespace q=NAMESPACE" in said(found)

    def test_what_the_api_server_adds_by_itself_is_not_remarked(self) -> None:
        usual = {"queueingStrategy": "BestEffortFIFO", "stopPolicy": "None", "admissionChecks": []}
        fungible = {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"}
        found = translate([self.queue(**usual, flavorFungibility=fungible)], Choices({"gpus": "V100"}, {"q": ("n",)}))
        assert remarks(found) == [("ClusterQueue q", "")], "but that nothing is shared"

    def test_a_local_queue_of_no_cluster_queue_is_told(self) -> None:
        lost = {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "LocalQueue",
            "metadata": {"name": "l", "namespace": "n"},
            "spec": {"clusterQueue": "gone"},
        }
        assert "there is no ClusterQueue gone" in said(translate([lost], Choices()))


class TestVolcano:
    def test_deserved_is_the_guarantee_and_what_is_reserved_is_not_lent(self) -> None:
        choices = Choices({UNTYPED: "A100"}, {"vision": ("v", "w")})
        assert specs(translate(example("volcano"), choices)) == {
            "research": {"guarantee": {"A100": 12}, "limit": {"A100": 16}},
            "vision": {
                "parent": "research",
                "guarantee": {"A100": 8},
                "lending": {"A100": 6},
                "limit": {"A100": 12},
                "namespaces": ["v", "w"],
            },
            "speech": {"parent": "research", "guarantee": {"A100": 4}, "weight": 2.0},
        }

    def test_each_line_without_counterpart_is_named(self) -> None:
        assert remarks(translate(example("volcano"), A100)) == [
            ("Queue research", "spec.deserved.cpu"),
            ("Queue vision", ""),
            ("Queue vision", "spec.priority"),
            ("Queue speech", "spec.reclaimable"),
            ("Queue speech", ""),
        ]

    def queue(self, name: str = "q", **spec: Any) -> Json:
        return {
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec,
        }  # fmt: skip

    def test_the_root_makes_no_tenant(self) -> None:
        assert list(specs(translate([self.queue("root"), self.queue("q", parent="root")], Choices()))) == ["q"]

    def test_a_queue_by_weight_has_no_guarantee(self) -> None:
        found = translate([self.queue(weight=4)], Choices())
        assert specs(found)["q"] == {"weight": 4.0}
        assert "under the policy hierarchical" in said(found)

    def test_a_guarantee_above_the_limit_is_lowered(self) -> None:
        found = translate([self.queue(deserved={GPU: 8}, capability={GPU: 4})], A100)
        assert specs(found)["q"] == {"guarantee": {"A100": 4}, "limit": {"A100": 4}}
        assert "the guarantee of 8 A100 is above the limit and lowered to 4" in said(found)


class TestKai:
    def test_quota_limit_and_weight(self) -> None:
        assert specs(translate(example("kai"), A100)) == {
            "research": {"guarantee": {"A100": 12}, "limit": {"A100": 16}},
            "vision": {"parent": "research", "weight": 3.0, "guarantee": {"A100": 8}},
            "speech": {"parent": "research", "guarantee": {"A100": 4}, "limit": {"A100": 4}, "borrowing": {"A100": 0}},
        }

    def test_each_line_without_counterpart_is_named(self) -> None:
        assert remarks(translate(example("kai"), A100)) == [
            ("Queue research", "spec.resources.cpu"),
            ("Queue research", "spec.resources.memory"),
            ("Queue research", "spec.displayName"),
            ("Queue vision", ""),
            ("Queue vision", "spec.priority"),
            ("Queue speech", ""),
        ]

    def queue(self, **gpu: Any) -> Json:
        spec = {"resources": {"gpu": gpu}}
        return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}

    @pytest.mark.parametrize(
        ("gpu", "spec", "words"),
        [
            ({"quota": -1, "limit": -1}, {}, "a guarantee of everything cannot be kept"),
            ({"quota": -1}, {}, "a guarantee of everything cannot be kept"),
            ({"quota": 2}, {"guarantee": {"A100": 2}, "limit": {"A100": 2}}, "nothing beyond its quota"),
            ({"quota": 1.5, "limit": -1}, {"guarantee": {"A100": 1}}, "1.5 GPUs are counted as 1"),
            ({"quota": 0, "limit": -1}, {}, "pods name a KAI queue"),
            ({"quota": 1, "limit": 3, "burst": 2}, {"guarantee": {"A100": 1}, "limit": {"A100": 3}}, "burst: has no"),
        ],
    )
    def test_special_values(self, gpu: Json, spec: Json, words: str) -> None:
        found = translate([self.queue(**gpu)], A100)
        assert specs(found)["q"] == spec
        assert words in said(found)


class TestBadInput:
    @pytest.mark.parametrize(
        ("objects", "words"),
        [
            (["text"], "an object without kind or metadata.name"),
            ([{"kind": "Queue"}], "an object without kind or metadata.name"),
            ([TestKai().queue(quota="many")], "Queue q: spec.resources.gpu.quota: 'many' is not a Kubernetes quantity"),
            ([TestKai().queue(quota=True)], "Queue q: spec.resources.gpu.quota: True is no quantity"),
            ([TestKai().queue(quota=-3)], "Queue q: the Tenant's spec.guarantee.A100"),
            ([TestVolcano().queue(deserved=[])], ""),
            ([TestVolcano().queue(deserved="all")], "Queue q: spec.deserved: must be an object"),
            (
                [TestKueue().queue() | {"spec": {"resourceGroups": "x"}}],
                "ClusterQueue q: spec.resourceGroups: must be a",
            ),
        ],
    )
    def test_it_is_refused_with_its_place(self, objects: list[Any], words: str) -> None:
        if not words:
            assert translate(objects, A100).tenants
            return
        with pytest.raises(ValueError, match=re.escape(words)):
            translate(objects, A100)

    def test_a_queue_without_a_type_asks_for_it(self) -> None:
        with pytest.raises(ValueError, match="give --gpu-type TYPE"):
            translate([TestKai().queue(quota=1)], Choices())

    def test_a_name_that_no_tenant_can_have_is_told(self) -> None:
        long = TestVolcano().queue("n" * 64)
        found = translate([long], Choices())
        assert found.tenants == ()
        assert "63 characters at the most" in said(found)

    def test_what_is_none_of_these_is_named(self) -> None:
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "p"}}
        found = translate([other, group], Choices())
        assert remarks(found) == [("ConfigMap c", ""), ("PodGroup p", "")]

    SPEC = st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-2, 100)
        | st.text(max_size=3)
        | st.sampled_from(["4", "1.5", "a", "b"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "parent",
                        "cohort",
                        "parentQueue",
                        "resources",
                        "gpu",
                        "quota",
                        "limit",
                        "deserved",
                        GPU,
                        "weight",
                        "resourceGroups",
                        "flavors",
                        "name",
                        "nominalQuota",
                        "fairSharing",
                        "guarantee",
                        "resource",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
    KINDS = st.sampled_from(
        [
            ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
            ("kueue.x-k8s.io/v1beta1", "Cohort"),
            ("kueue.x-k8s.io/v1beta1", "LocalQueue"),
            ("kueue.x-k8s.io/v1beta1", "ResourceFlavor"),
            ("scheduling.volcano.sh/v1beta1", "Queue"),
            ("scheduling.run.ai/v2", "Queue"),
        ]
    )

    @given(st.lists(st.tuples(KINDS, st.sampled_from("ab"), SPEC), max_size=3))
    def test_odd_objects_are_translated_or_refused(self, drawn: list[tuple[tuple[str, str], str, Any]]) -> None:
        objects = [
            {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
            for (version, kind), name, spec in drawn
        ]
        try:
            found = translate(objects, A100)
        except ValueError:
            return
        for spec in specs(found).values():
            TenantSpec.model_validate(spec)
