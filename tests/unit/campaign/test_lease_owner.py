"""What others who want a device are told of the campaign that has it."""

from edgeflare.campaign.fleet import LeaseOwner


def test_a_lease_names_the_campaign_and_belongs_to_its_id() -> None:
    lease = LeaseOwner("0f", "LeNet-1/dflare/0").lease("pi4")
    assert "campaign LeNet-1/dflare/0" in lease.about
    assert (lease.holder, lease.session) == ("0f", "0f/pi4")
